"""A look at the data before the first job: fetch them, check them, try the splits.

Bad data are the user's input. They end the command with one line, not every job with a record.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mmbench.config.model import Config, DatasetEntry
from mmbench.errors import UserError

if TYPE_CHECKING:
    from mmbench.datasets import Dataset


def prepare_data(
    config: Config,
    wanted: set[str] | None,
    store: Path,
    mirror: str | None,
    say: Callable[[str], object],
) -> None:
    """Fetch and check the data of an experiment, and see that its splits can be made.

    Parameters
    ----------
    config : Config
    wanted : set of str or None
        Names of the data sets that will run; None for all.
    store : Path
    mirror : str, optional
    say : callable
        Gets one line for everything suspicious that is no error.

    Raises
    ------
    UserError
        If data cannot be had or are bad, or cannot be cut as the configuration says.
    """
    for entry in config.datasets:
        if wanted is None or entry.label in wanted:
            data = _prepare(config, entry, store, mirror)
            _check_inner_folds(config, data)
            for warning in data.warnings:
                say(f"{entry.path or entry.label}: warning: {warning}")


def _prepare(config: Config, entry: DatasetEntry, store: Path, mirror: str | None) -> Dataset:
    from mmbench.datasets import prepare, split_at

    ref, protocol = entry.ref(config.steps_of(entry)), config.protocol
    data = prepare(
        ref,
        protocol.test.spec,
        store=store,
        mirror=mirror,
        repeats=protocol.repeats,
        seed=protocol.seed,
        max_train=protocol.subsets[0],
        classes=ref.classes,
        steps=ref.steps,
        progress=sys.stderr.isatty(),
    )
    if len(protocol.subsets) > 1:  # the largest may be larger than the training part
        split_at(protocol.test.spec, data, seed=protocol.seed, max_train=protocol.subsets[-1])
    return data


def _check_inner_folds(config: Config, data: Dataset) -> None:
    """Refuse a class that has too few training rows for the folds of the selection.

    Splits are stratified, so the first one of the smallest size speaks for all.
    """
    import numpy as np

    from mmbench.datasets import split_at

    folds, protocol = config.select.ref.folds, config.protocol
    if folds is None or not any(entry.grid for entry in config.machines.values()):
        return
    subset = protocol.subsets[0]
    split = split_at(protocol.test.spec, data, seed=protocol.seed, max_train=subset)
    labels, counts = np.unique(data.y[split.train], return_counts=True)
    if counts.min() < folds:
        rare = f"class {labels[counts.argmin()]!s} has {counts.min()} rows to train on"
        raise UserError(f"data set {data.name!r}: {rare}, fewer than the {folds} folds of 'select'")
