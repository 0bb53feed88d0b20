"""Max-margin classifiers and the experiments that reproduce their papers."""

__version__ = "0.1.0"
