"""From a YAML file to a checked `Config` and its list of frozen jobs; reads no data."""
