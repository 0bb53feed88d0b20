"""Tables and figures of results, with each measured value beside the published value."""
