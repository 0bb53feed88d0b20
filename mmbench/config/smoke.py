"""The smoke version of an experiment: the same real data, machines and code, in a minute.

Splits, inner folds, grid points and training rows are fewer; nothing is replaced by a stand-in. The
name gets a suffix, which keeps its records apart from those of the full run.
"""

from mmbench.config.grids import Axis, expand_auto
from mmbench.config.model import Config, Protocol, TestRule
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

    At most 2 splits, 2 inner folds, 2 values per axis, the first degree, and a stratified subset
    of 500 training rows, or of 250 and 500 if there are several sizes; tests are on all test rows.
    """
    select, given = config.select, config.parameters_from
    folds = None if select.ref.folds is None else min(select.ref.folds, MAX_FOLDS)
    if given is not None and given.splits is not None:
        given = given.model_copy(update={"splits": min(given.splits, MAX_SPLITS)})
    datasets = [
        entry.model_copy(update={"grid": {name: _thin(axis) for name, axis in entry.grid.items()}})
        for entry in config.datasets
    ]
    repeats = min(select.repeats, MAX_SPLITS)
    small = config.model_copy(
        update={
            "name": config.name + SUFFIX,
            "datasets": datasets,
            "degree": config.degree and config.degree[:1],
            "protocol": _protocol(config.protocol),
            "select": select.model_copy(update={"folds": folds, "repeats": repeats}),
            "machines": {
                name: entry.model_copy(update={"grid": _grid(name, config)})
                for name, entry in config.machines.items()
            },
            "parameters_from": given,
        }
    )
    return small.with_source(version_for(small, config.source)) if config.source else small


def version_for(config: Config, source: Config) -> Config:
    """Return the version of a source that an experiment takes its parameters from.

    A smoke version takes them from a smoke version, with the one degree that is left.
    """
    if not config.name.endswith(SUFFIX):
        return source
    return smoke(source).model_copy(update={"degree": config.degree})


def _grid(column: str, config: Config) -> dict[str, Axis]:
    """Thin a machine's grid, with explicit values for ``auto``.

    An axis that a data set replaces keeps its name, by which it is replaced.
    """
    grid = config.machines[column].grid
    replaced = {axis for dataset in config.datasets for axis in dataset.grid}
    rest = {axis: values for axis, values in grid.items() if axis not in replaced}
    axes: dict[str, Axis] = {axis: grid[axis] for axis in grid if axis in replaced}
    axes.update(expand_auto(machine_class(config.machine_of(column)), rest))
    return {axis: _thin(values) for axis, values in axes.items()}


def _protocol(protocol: Protocol) -> Protocol:
    test = protocol.test
    if test.rule in ("kfold", "time_series"):
        test = TestRule(rule=test.rule, arg=MAX_SPLITS)
    elif test.rule == "leave_one_out":  # two parts in place of one per row
        test = TestRule(rule="kfold", arg=MAX_SPLITS)
    repeats = MAX_SPLITS if test.rule in ("holdout", "predefined") else 1
    update = {
        "test": test,
        "repeats": min(repeats, protocol.repeats or repeats),
        "max_train": _max_train(protocol.max_train),
        "seed": protocol.seeds[0],
    }
    return protocol.model_copy(update=update)


def _max_train(given: MaxTrain) -> MaxTrain:
    if isinstance(given, TrainingSizes):
        # the smallest, or the limit and its half: sizes are there to be compared
        small = given[:MAX_VALUES]
        fewer = (MAX_TRAIN // 2, MAX_TRAIN)[-len(small) :]
        return TrainingSizes(small if small[-1] <= MAX_TRAIN else fewer)
    if isinstance(given, tuple):
        return (given[0], min(given[1], MAX_PER_CLASS))
    return min(MAX_TRAIN, given or MAX_TRAIN)


def _thin(axis: Axis) -> Axis:
    """Return two values from the middle of an axis: its ends are seldom chosen."""
    if isinstance(axis, str) or len(axis) <= MAX_VALUES:
        return axis
    n = len(axis)
    return tuple(axis[(2 * k + 1) * n // (2 * MAX_VALUES)] for k in range(MAX_VALUES))
