"""Tables and figures of results, which show published values beside measured values."""
