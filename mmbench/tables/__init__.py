"""Tables and figures of records, with each measured value beside the published value."""
