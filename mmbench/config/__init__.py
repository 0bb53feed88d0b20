"""Read a YAML file into a checked `Config`, and plan its jobs."""
