"""What an experiment does with its data before it plans jobs: fetch, check, try the first split.

Bad data are the user's input, so they end the command before any job runs, not inside a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mmbench.datasets.classes import keep_classes
from mmbench.datasets.dataset import Dataset
from mmbench.datasets.load import Reference, load_dataset
from mmbench.datasets.preprocess.steps import Step, check_steps
from mmbench.datasets.splits import split_at, split_slots
from mmbench.datasets.splits.rules import MaxTrain, RuleSpec
from mmbench.errors import UserError


def prepare(
    ref: Reference,
    rule: RuleSpec,
    *,
    store: str | Path,
    mirror: str | Path | None = None,
    repeats: int | None = None,
    seed: int = 0,
    max_train: MaxTrain = None,
    classes: Sequence[str] = (),
    steps: Step | Sequence[Step] = "none",
    allow_network: bool = True,
    progress: bool = False,
) -> Dataset:
    """Load a data set and make sure that the experiment's first split and its steps fit it.

    Call it once for each data set before `dataset_hash`: afterwards the data are near, and workers
    need no network. The user should see `Dataset.warnings`.

    Raises
    ------
    UserError
        If the data cannot be had or are bad, one of `classes` does not occur, a class has fewer
        rows than folds, a split would be empty, or a preprocessing step does not fit the number of
        columns.
    """
    data = load_dataset(
        ref, store=store, mirror=mirror, allow_network=allow_network, progress=progress
    )
    data = keep_classes(data, classes)
    problem = check_steps(steps, n_features=data.X.shape[1])
    if problem:
        raise UserError(f"data set {data.name!r}: {problem}")
    repeat, fold = split_slots(rule, data, repeats)[0]
    split_at(rule, data, repeat=repeat, fold=fold, seed=seed, max_train=max_train)
    return data
