"""Preprocessing, fitted on the training part alone."""
