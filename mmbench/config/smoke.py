"""The smoke version of an experiment: a run of about a minute, with the same data and machines.

It has fewer splits, inner folds, grid points and rows, and a results folder of its own.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from mmbench.config.grids import Axis, expand_auto
from mmbench.config.model import Config, Protocol
from mmbench.config.values import MaxTrain
from mmbench.datasets.partitions import SplitRule
from mmbench.machines import machine_class

Model = TypeVar("Model", bound=BaseModel)

SUFFIX = "-smoke"
MAX_TRAIN = 500
MAX_PER_CLASS = 50
#: Maximum number of splits in a smoke version, and maximum number of inner folds.
MAX_SPLITS = 2
MAX_VALUES = 2


def smoke(config: Config) -> Config:
    """Return the configuration of the smoke version of an experiment.

    It has at most 2 splits, 2 inner folds, 2 values per parameter, 1 polynomial degree and 500
    stratified training rows (50 per class if the experiment limits rows per class), and all test
    rows. Of several training sizes, the two smallest are used, or 250 and 500 if one of them
    exceeds 500.
    """
    select, given, columns = config.select, config.parameters_from, config.machines.items()
    folds = None if select.ref.folds is None else min(select.ref.folds, MAX_SPLITS)
    if given is not None and given.splits is not None:
        given = _changed(given, splits=min(given.splits, MAX_SPLITS))
    small = _changed(
        config,
        name=config.name + SUFFIX,
        datasets=[_changed(entry, grid=_thin(entry.grid)) for entry in config.datasets],
        degree=config.degree and config.degree[:1],
        protocol=_protocol(
            config.protocol, any(entry.ref(()).splits_source for entry in config.datasets)
        ),
        select=_changed(select, folds=folds, repeats=min(select.repeats, MAX_SPLITS)),
        machines={name: _changed(entry, grid=_grid(name, config)) for name, entry in columns},
        parameters_from=given,
    )
    return small.with_source(version_for(small, config.source)) if config.source else small


def _changed(model: Model, **values: Any) -> Model:
    return model.model_copy(update=values)


def version_for(config: Config, source: Config) -> Config:
    """Return the experiment from which `config` takes selected parameters.

    If `config` is a smoke version, the function returns the smoke version of `source` with the
    polynomial degree of `config`. Otherwise, it returns `source` itself.
    """
    if not config.name.endswith(SUFFIX):
        return source
    return _changed(smoke(source), degree=config.degree)


def _grid(column: str, config: Config) -> dict[str, Axis]:
    """Return a machine's grid with at most `MAX_VALUES` values per parameter.

    If a data set replaces the values of a parameter, ``auto`` is not expanded for this parameter.
    """
    grid = config.machines[column].grid
    # ``B: auto`` may expand to values of ``B_fraction``, so that values of ``B`` for a data set
    # would have no effect
    replaced = {axis for dataset in config.datasets for axis in dataset.grid}
    rest = {axis: values for axis, values in grid.items() if axis not in replaced}
    kept = {axis: values for axis, values in grid.items() if axis in replaced}
    return _thin({**kept, **expand_auto(machine_class(config.machine_of(column)), rest)})


def _protocol(protocol: Protocol, own_folds: bool) -> Protocol:
    """Return a protocol with few splits.

    If `own_folds` is true, only one split of the rule ``predefined`` is kept, since a user's file
    of folds may have a single split.
    """
    test = protocol.test
    if test.rule in ("kfold", "time_series", "leave_one_out"):
        # leave-one-out is replaced by 2-fold cross-validation
        test = SplitRule(test.rule.replace("leave_one_out", "kfold"), MAX_SPLITS)
    most = {"holdout": MAX_SPLITS, "predefined": 1 if own_folds else MAX_SPLITS}.get(test.rule, 1)
    repeats, size = min(most, protocol.repeats or most), _max_train(protocol.max_train)
    return _changed(protocol, test=test, repeats=repeats, max_train=size, seed=protocol.seed[:1])


def _max_train(given: MaxTrain) -> MaxTrain:
    if isinstance(given, list):
        # two training sizes remain, so that the smoke version compares training sizes too
        small = given[:MAX_VALUES]
        return small if small[-1] <= MAX_TRAIN else [MAX_TRAIN // 2, MAX_TRAIN][-len(small) :]
    if isinstance(given, dict):
        return {"per_class": min(given["per_class"], MAX_PER_CLASS)}
    return min(MAX_TRAIN, given or MAX_TRAIN)


def _thin(grid: Mapping[str, Axis]) -> dict[str, Axis]:
    """Return a grid with at most two values per parameter.

    A longer list is reduced to the values at one quarter and three quarters of the list, since grid
    search seldom selects the ends of a long list.
    """
    thin = dict(grid)
    for name, axis in grid.items():
        if not isinstance(axis, str) and len(axis) > MAX_VALUES:
            middle = [(2 * k + 1) * len(axis) // (2 * MAX_VALUES) for k in range(MAX_VALUES)]
            thin[name] = tuple(axis[k] for k in middle)
    return thin
