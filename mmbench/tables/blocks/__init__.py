"""What tables are made of: accuracies, counts, seconds and tests, shared by all layouts."""
