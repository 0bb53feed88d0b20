"""From a YAML file to a printable list of frozen jobs, and through the layers below to records."""
