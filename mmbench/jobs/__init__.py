"""Jobs: definition, data, training, evaluation and records."""
