"""Read a YAML file as a checked configuration (`Config`), and plan its jobs."""
