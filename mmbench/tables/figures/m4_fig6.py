"""Figure 6 of the M4 paper: toy sets III and IV, and the boundaries of M4, SVM, MPM and Bayes."""

from pathlib import Path

from mmbench.tables.figures.m4_boundaries import draw_sets
from mmbench.tables.records import Experiment

MACHINE = "m4"
EXPERIMENTS = ("m4_table1",)
SETS = {"toy_3": "Set III: a mixture", "toy_4": "Set IV: 20 training points a class"}


def draw(experiment: Experiment, output: Path) -> str:
    """Write the figure and return the accuracies on the draws shown."""
    return draw_sets(experiment, output, SETS)
