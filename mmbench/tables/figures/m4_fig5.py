"""Figure 5 of the M4 paper: toy sets I and II, and the boundaries of M4, SVM, MPM and Bayes."""

from pathlib import Path

from mmbench.tables.figures.m4_boundaries import draw_sets
from mmbench.tables.records import Experiment

MACHINE = "m4"
EXPERIMENTS = ("m4_table1",)
SETS = {"toy_1": "Set I: unequal spreads", "toy_2": "Set II: unequal orientations"}


def draw(experiment: Experiment, output: Path) -> str:
    """Write the figure and return the accuracies on the draws shown."""
    return draw_sets(experiment, output, SETS)
