"""Preprocessing, fitted on the training part alone."""

from mmbench.datasets.preprocess.steps import check_steps, make_preprocess, parse_steps

__all__ = ["check_steps", "make_preprocess", "parse_steps"]
