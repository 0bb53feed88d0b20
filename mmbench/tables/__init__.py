"""Tables and figures of results, in which each measured value has the published value beside it."""
