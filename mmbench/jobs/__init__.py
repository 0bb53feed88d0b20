"""The contract between planning, running and tables: a job, its data, its training, its record."""
