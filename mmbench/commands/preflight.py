"""A look at the data before the first job: fetch them, check them, try the splits.

Bad data are the user's input. They end the command with one line, not every job with a record.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from mmbench.config.model import Config, DatasetEntry
from mmbench.datasets import (
    Dataset,
    load_dataset,
    split_at,
    split_slots,
    too_few_rows,
)
from mmbench.errors import UserError


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
        Gets a line for each warning about the data.

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
                say(f"{entry.source or entry.label}: warning: {warning}")


def _prepare(config: Config, entry: DatasetEntry, store: Path, mirror: str | None) -> Dataset:
    """Load a data set and make sure that its steps and its first split can be made."""
    ref, protocol = entry.ref(config.steps_of(entry)), config.protocol
    data = load_dataset(ref, store=store, mirror=mirror, progress=sys.stderr.isatty())
    rule, seed = protocol.test.spec, protocol.seeds[0]
    repeat, fold = split_slots(rule, data, protocol.repeats)[0]
    for subset in dict.fromkeys((protocol.subsets[0], protocol.subsets[-1])):
        split_at(rule, data, repeat=repeat, fold=fold, seed=seed, max_train=subset)
    return data


def _check_inner_folds(config: Config, data: Dataset) -> None:
    """Refuse a class that has too few training rows for the folds of the selection.

    Splits are stratified, so the first one of the smallest size speaks for all.
    """
    folds, protocol = config.select.ref.folds, config.protocol
    in_time = protocol.test.rule == "time_series"
    if folds is None or in_time or not any(entry.grid for entry in config.machines.values()):
        return
    subset = protocol.subsets[0]
    split = split_at(protocol.test.spec, data, seed=protocol.seeds[0], max_train=subset)
    if problem := too_few_rows(data.y[split.train], folds):
        raise UserError(f"data set {data.name!r}: in the training part, {problem} of 'select'")
