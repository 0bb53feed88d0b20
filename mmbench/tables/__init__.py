"""Records to tables and figures, each measured value beside the published one."""
