"""The smallest honest version of an experiment: the same real data, machines and code, in a minute.

Everything that costs time shrinks: splits, inner folds, grid points, training rows. Nothing is
replaced by something else. The name gets a suffix, so that its records never join the full run's.
"""

from mmbench.config.grids import Axis, expand_auto
from mmbench.config.model import (
    Config,
    DatasetEntry,
    MachineEntry,
    ParametersFrom,
    Protocol,
    Select,
    TestRule,
)
from mmbench.config.values import MaxTrain, TrainingSizes
from mmbench.machines import machine_class

SUFFIX = "-smoke"
MAX_TRAIN = 500
MAX_PER_CLASS = 50
MAX_SPLITS = 2
MAX_FOLDS = 2
MAX_VALUES = 2


def smoke(config: Config) -> Config:
    """Return the smoke version of an experiment.

    At most 2 splits, 2 inner folds, 2 values an axis, the first degree, and a stratified subset
    of 500 training rows, or of 250 and 500 where there are several sizes; tests are on all test
    rows.
    """
    small = config.model_copy(
        update={
            "name": config.name + SUFFIX,
            "datasets": [_dataset(entry) for entry in config.datasets],
            "degree": config.degree and config.degree[:1],
            "protocol": _protocol(config.protocol),
            "select": _select(config.select),
            "machines": {name: _machine(name, config) for name in config.machines},
            "parameters_from": _parameters_from(config.parameters_from),
        }
    )
    return small.with_source(version_for(small, config.source)) if config.source else small


def version_for(config: Config, source: Config) -> Config:
    """Return the version of a source that an experiment takes its parameters from.

    Of a smoke version it is the smoke version, with the one degree that is left.
    """
    if not config.name.endswith(SUFFIX):
        return source
    return smoke(source).model_copy(update={"degree": config.degree})


def _dataset(entry: DatasetEntry) -> DatasetEntry:
    return entry.model_copy(update={"grid": {n: _thin(axis) for n, axis in entry.grid.items()}})


def _machine(name: str, config: Config) -> MachineEntry:
    """Thin a machine's grid, ``auto`` included: it is written out first.

    An axis that a data set replaces keeps its name, by which it is replaced.
    """
    entry = config.machines[name]
    replaced = {axis for dataset in config.datasets for axis in dataset.grid}
    kept = {axis: values for axis, values in entry.grid.items() if axis in replaced}
    rest = {axis: values for axis, values in entry.grid.items() if axis not in replaced}
    axes = {**kept, **expand_auto(machine_class(config.machine_of(name)), rest)}
    return entry.model_copy(update={"grid": {axis: _thin(values) for axis, values in axes.items()}})


def _protocol(protocol: Protocol) -> Protocol:
    test = protocol.test
    if test.rule in ("kfold", "time_series"):
        test = TestRule(rule=test.rule, arg=MAX_SPLITS)
    elif test.rule == "leave_one_out":  # two parts in place of one a row
        test = TestRule(rule="kfold", arg=MAX_SPLITS)
    repeats = MAX_SPLITS if test.rule in ("holdout", "predefined") else 1
    update = {
        "test": test,
        "repeats": min(repeats, protocol.repeats or repeats),
        "max_train": _max_train(protocol.max_train),
        "seed": protocol.seeds[0],
    }
    return protocol.model_copy(update=update)


def _max_train(most: MaxTrain) -> MaxTrain:
    if isinstance(most, TrainingSizes):
        # the smallest, or the limit and its half: sizes are there to be compared
        small = most[:MAX_VALUES]
        fewer = (MAX_TRAIN // 2, MAX_TRAIN)[-len(small) :]
        return TrainingSizes(small if small[-1] <= MAX_TRAIN else fewer)
    if isinstance(most, tuple):
        return (most[0], min(most[1], MAX_PER_CLASS))
    return min(MAX_TRAIN, most or MAX_TRAIN)


def _select(select: Select) -> Select:
    ref = select.ref
    folds = None if ref.folds is None else min(ref.folds, MAX_FOLDS)
    return select.model_copy(update={"folds": folds, "repeats": min(select.repeats, MAX_SPLITS)})


def _parameters_from(given: ParametersFrom | None) -> ParametersFrom | None:
    if given is None or given.splits is None:
        return given
    return given.model_copy(update={"splits": min(given.splits, MAX_SPLITS)})


def _thin(axis: Axis) -> Axis:
    """Return two values from the middle of an axis: its ends are seldom chosen."""
    if isinstance(axis, str) or len(axis) <= MAX_VALUES:
        return axis
    n = len(axis)
    return tuple(axis[(2 * k + 1) * n // (2 * MAX_VALUES)] for k in range(MAX_VALUES))
