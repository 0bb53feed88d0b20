"""Compare a configuration with the known machines, data sets and layouts, before data are read.

A faulty value raises `Fault` with the path of its keys.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from mmbench.config.faults import Fault, at, check_known, shown
from mmbench.config.grids import (
    AUTO,
    FORMS,
    KERNEL_PARAMETERS,
    Axis,
    distinct,
    expand_auto,
    in_other_words,
    in_yaml,
    n_points,
    replaced_by,
)
from mmbench.config.model import NAME_FORM, NAME_PATTERN, OWN_FILE, Config, DatasetEntry
from mmbench.config.plan import placed_rows, table_cells
from mmbench.datasets.card_files import card_names
from mmbench.datasets.dataset import DatasetRef, check_classes
from mmbench.datasets.partitions import split_slots
from mmbench.datasets.preprocess import check_steps
from mmbench.errors import did_you_mean
from mmbench.kernels import KERNELS
from mmbench.machines import ALIASES, MACHINES, alias_of, machine_class
from mmbench.machines.base.foreign import ForeignClassifier
from mmbench.machines.base.joint_training import JointClassifier
from mmbench.results.cells import ACCURACY, AVERAGED, BOUND, WORST_CLASS
from mmbench.results.folder import REFERENCE
from mmbench.results.published import (
    PRINTED_ERRORS,
    comparable,
    is_result,
    published_machines,
    published_rows,
    published_tables,
)
from mmbench.selection.metrics import METRICS
from mmbench.tables.layouts import LAYOUTS, check_able

#: Parameters not allowed in ``params`` and ``grid``, with the key or option that sets them.
EXPERIMENT_KEYS = {
    "kernel": "machines.{column}.kernel",
    **{key: f"the experiment's key {key!r}" for key in ("kernel_scaling", "ties")},
    "break_ties": "the experiment's key 'ties'",
    "decision_function_shape": "the caller of decision_function; records hold all pairs' values",
    "random_state": "protocol.seed",
    "n_jobs": "the option --jobs",
}
#: The parameters in `EXPERIMENT_KEYS` that an experiment sets for classifiers of other packages.
FOREIGN_KEYS = ("random_state", "n_jobs")


def check(config: Config) -> None:
    """Raise `Fault` if the experiment of a configuration cannot be run."""
    if config.name == REFERENCE:
        raise Fault(f"{REFERENCE!r} is the folder of the reference tables", "name")
    _check_number_of_jobs(config)
    columns = _check_machines(config)
    _check_shared_kernel_keys(config, columns)
    if config.select.validation == "rest" and config.protocol.max_train is None:
        raise Fault("rest needs rows left out by protocol.max_train", "select", "validation")
    _check_datasets(config, columns)
    _check_grid_points(config, columns)
    _check_published(config)
    for layout in config.layout:
        check_known(layout, LAYOUTS, "unknown layout", "layout")
        with at("layout"):
            if len(config.protocol.subsets) > 1:
                check_able(layout, "sized", "several training sizes")
        with at("metrics"):
            if config.metrics:
                check_able(layout, "any_metric", config.metrics[0])


def _check_number_of_jobs(config: Config) -> None:
    """Raise `Fault` if the number of jobs exceeds ``limits.jobs``.

    The number of jobs is estimated, since the exact number (see `plan`) can depend on data that are
    not read yet.
    """
    protocol, most = config.protocol, config.limits.jobs
    folds = protocol.test.arg if protocol.test.rule in ("kfold", "time_series") else None
    splits = int(folds or 1) * (protocol.repeats or 1) * len(protocol.seed)
    # the degrees do not apply to a classifier of another package whose entry states no kernel
    kernels = [
        kernel if machine.kernel or not machine.estimator else ""
        for name, machine in config.machines.items()
        for kernel in config.kernels_of(name)
    ]
    n_columns = sum(len(config.degree or [None]) if kernel == "poly" else 1 for kernel in kernels)
    n_jobs = len(config.datasets) * n_columns * splits * len(protocol.subsets)
    if n_jobs > most:
        option = f"more than {most} need --set limits.jobs={n_jobs}"
        raise Fault(f"the experiment has {n_jobs} jobs; {option}", "protocol")


# -- machines ----------------------------------------------------------------------------------


class MachineColumn:
    """An entry of ``machines``: a machine with its Python class, kernels and settings."""

    def __init__(self, config: Config, name: str):
        self.name, self.entry, self.machine = name, config.machines[name], config.machine_of(name)
        self.cls, self.alias = machine_class(self.machine), alias_of(self.machine)
        self.kernels = config.kernels_of(name)
        #: Whether the classifier is part of another package, such as scikit-learn.
        self.foreign = issubclass(self.cls, ForeignClassifier)
        #: Default kernel of a classifier of another package.
        self.own_kernel = getattr(self.cls, "defaults", {}).get("kernel")

    def check_parameter(self, parameter: str) -> None:
        """Raise ValueError if a parameter is unknown, fixed by the definition of the machine, set
        by another key, or without effect.
        """
        keys = FOREIGN_KEYS if self.foreign else EXPERIMENT_KEYS
        if parameter in keys:
            key = EXPERIMENT_KEYS[parameter].format(column=self.name)
            raise ValueError(f"{parameter} is set by {key}")
        if parameter == "kernel" and self.entry.kernel:
            raise ValueError(f"the key machines.{self.name}.kernel is also given; remove one")
        own = set(self.cls.parameters) - set(keys)
        check_known(parameter, own, f"{self.machine} has no parameter")
        means = in_other_words(self.cls).get(parameter, parameter)
        if means in self.alias.params:  # an alias is a machine with fixed parameters
            given = f"{means} is {self.alias.params[means]!r} in {self.machine} by definition"
            raise ValueError(f"{given}; {self.alias.machine} takes other values")
        if not self.foreign:
            check_relevant(parameter, self.kernels)

    def check_value(self, parameter: str, value: Any) -> None:
        """Raise ValueError if a value of a parameter is not valid for the machine."""
        if problem := self.cls.parameters[parameter].problem(value):
            raise ValueError(problem)
        if infinite := [part for part in _numbers(value) if not math.isfinite(part)]:
            raise ValueError(f"must be finite in an experiment, got {infinite[0]}")

    def check_axis(self, parameter: str, axis: Axis) -> None:
        """Raise ValueError if the values of a parameter in a grid are not valid for the machine."""
        self.check_parameter(parameter)
        automatic = self.cls.search_space.auto_grids
        if axis == AUTO and parameter not in automatic:
            message = f"{self.machine} has no automatic grid for {parameter}; list the values"
            raise ValueError(f"{message} (automatic: {', '.join(automatic) or 'none'})")
        for value in () if axis == AUTO else axis:
            if isinstance(value, tuple) and not self.foreign:
                raise ValueError(f"must be {FORMS}, got {shown(in_yaml(value))} inside the list")
            if isinstance(value, str | None) and self.cls.parameters[parameter].numeric:
                raise ValueError(f"the values of {parameter} must be numbers, got {value!r}")
            self.check_value(parameter, value)


def _numbers(value: Any) -> Iterator[float]:
    """Yield the floating-point numbers in the value of a parameter."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)


def check_relevant(parameter: str, kernels: Iterable[str]) -> None:
    """Raise ValueError if none of the given kernels uses a parameter."""
    needs = KERNEL_PARAMETERS.get(parameter)
    if needs and needs not in kernels:
        names = " and ".join(kernels)
        raise ValueError(f"{parameter} has no effect: the kernel is {names}, not {needs}")


def _check_machines(config: Config) -> list[MachineColumn]:
    """Check the machines of an experiment, and return a `MachineColumn` for each machine."""
    columns: list[MachineColumn] = []
    for name, entry in config.machines.items():
        with at("machines", name):
            if entry.machine is not None and entry.estimator is not None:
                raise ValueError("give only one of machine and estimator")
            _check_name(name, config.machine_of(name))
            with at("machine" if entry.estimator is None else "estimator"):
                columns.append(MachineColumn(config, name))
        if columns[-1].foreign and entry.estimator is None:
            path = columns[-1].machine.replace(":", ".")
            raise Fault(f"belongs to another package; write estimator: {path}", "machines", name)
    for k, column in enumerate(columns):
        keys = ("machines", column.name, "kernel") if column.entry.kernel else ("kernel",)
        for kernel in column.kernels:
            check_known(kernel, column.cls.kernels, f"{column.machine} has no kernel", *keys)
        with at("machines", column.name):
            _check_settings(column)
            with at("kernel"):
                _check_own_kernel(column)
            with at("use"):
                _check_parent(config, column, list(config.machines)[:k])
            if column.entry.calibrate and config.select.scope == "pair":
                raise Fault("needs one parameter set for all pairs; use scope: global", "calibrate")
            if column.entry.calibrate and config.protocol.test.rule == "time_series":
                raise Fault("needs folds of all training rows; time_series has none", "calibrate")
        joint = column.foreign or issubclass(column.cls, JointClassifier)
        if config.select.scope == "pair" and joint:
            message = f"{column.name} has one parameter set for all pairs; use scope: global"
            raise Fault(message, "select", "scope")
    declared = {p: d for column in columns for p, d in column.cls.parameters.items()}
    known = {p for p, d in declared.items() if d.numeric and p not in EXPERIMENT_KEYS}
    with at("select", "prefer"):
        for parameter in config.select.prefer:
            check_known(parameter, known, "no machine here has the parameter", parameter)
    return columns


def _check_name(name: str, machine: str) -> None:
    """Raise ValueError if an entry of ``machines`` has an unknown machine, an invalid name, or the
    name of another machine.
    """
    known = (*MACHINES, *ALIASES)
    if machine == name and name not in known:
        stated = "a column of another name states its machine: {machine: NAME}"
        raise ValueError(f"unknown machine {name!r}{did_you_mean(name, known)} ({stated})")
    if machine != name and name in known:
        raise ValueError(f"{name!r} is the name of another machine; give this column another name")
    if machine != name and not re.fullmatch(NAME_PATTERN, name):
        raise ValueError(f"the name must be {NAME_FORM}, got {name!r}")


def _check_settings(column: MachineColumn) -> None:
    """Check the grid and the fixed parameters of a machine in the configuration."""
    entry = column.entry
    for parameter, axis in entry.grid.items():
        with at("grid", parameter):
            column.check_axis(parameter, axis)
    for parameter, value in entry.params.items():
        with at("params", parameter):
            column.check_parameter(parameter)
            if isinstance(value, tuple) and not column.foreign:
                given = shown(in_yaml(value))
                raise ValueError(f"takes no list, got {given}; values to search belong in 'grid'")
            column.check_value(parameter, value)
            if parameter in entry.grid:
                raise ValueError(f"{parameter} is also in grid; remove one of them")
    stated = {**dict.fromkeys(entry.grid, "grid"), **dict.fromkeys(entry.params, "params")}
    for parameter, other in replaced_by(column.cls, stated).items():
        if parameter in stated:
            raise Fault(f"give only one of {parameter} and {other}", stated[other], other)


def _check_own_kernel(column: MachineColumn) -> None:
    """Raise ValueError if a classifier of another package has no parameter for its kernels, or if
    it would use parameters that were selected for another kernel.
    """
    if not column.foreign:
        return
    stated, own = column.entry.kernel, column.entry.params.get("kernel", column.own_kernel)
    if stated and stated[1:] and "kernel" not in column.cls.parameters:
        raise ValueError(f"{column.machine} has no parameter kernel; give one kernel, for tables")
    if column.entry.use and not stated and own in KERNELS and [own] != column.kernels:
        theirs = f"the parameters of {column.entry.use} are selected for {column.kernels[0]}"
        raise ValueError(f"is {own}, but {theirs}; add kernel: {column.kernels[0]}")


def _check_parent(config: Config, column: MachineColumn, before: list[str]) -> None:
    """Check that the key ``use`` of `column` names an earlier entry of ``machines``, which runs
    with all kernels of `column`.
    """
    parent = column.entry.use
    if parent is None:
        return
    if parent not in config.machines:
        check_known(parent, before, "the experiment has no machine")
    if parent not in before:
        chain = [column.name]
        while (following := config.machines[chain[-1]].use) in config.machines:
            chain.append(following)
            if following in chain[:-1]:
                raise ValueError(f"the machines use each other in a circle: {' -> '.join(chain)}")
        raise ValueError(f"{parent!r} must be listed before {column.name!r}")
    if lacking := set(column.kernels) - set(config.kernels_of(parent)):
        raise ValueError(f"{parent} does not run with kernel {min(lacking)}")
    own = config.machines[parent]
    scaled = own.grid.get("gamma") == AUTO or own.params.get("gamma_scaling", "none") != "none"
    takes = "gamma" in column.cls.parameters and "gamma" not in {*column.entry.grid}
    if scaled and takes and "gamma_scaling" not in column.cls.parameters:
        values = f"--set 'machines.{parent}.grid.gamma={{log2: [-15, 3, 2]}}'"
        raise ValueError(f"has no parameter gamma_scaling, the unit of {parent}'s gamma; {values}")


def _check_grid_points(config: Config, columns: list[MachineColumn]) -> None:
    for column in columns:
        grid = column.entry.grid
        for entry in config.datasets if grid else ():
            axes = {name: entry.grid[name] if name in entry.grid else grid[name] for name in grid}
            points = n_points(expand_auto(column.cls, axes), column.alias.stages)
            if points > (most := config.limits.grid_points):
                option = f"more than {most} need --set limits.grid_points={points}"
                raise Fault(f"{points} grid points; {option}", "machines", column.name, "grid")


def _check_shared_kernel_keys(config: Config, columns: list[MachineColumn]) -> None:
    for key in ("gamma_scaling", "kernel_scaling", "degree"):
        if getattr(config, key) in ("none", None):
            continue
        with at(key):
            check_relevant(key, sorted({k for column in columns for k in column.kernels}))
            # `key` would have no effect on a machine without a parameter of this name
            for column in columns:
                if key != "degree" and not column.foreign and key not in column.cls.parameters:
                    raise ValueError(f"{column.machine} has no parameter {key!r}")
        for name, entry in config.machines.items():
            for part in ("params", "grid"):
                own = entry.estimator and not entry.kernel  # the experiment's key does not apply
                if key in getattr(entry, part) and not own:
                    message = "is also set for the whole experiment; remove one of them"
                    raise Fault(message, "machines", name, part, key)


# -- other experiments -------------------------------------------------------------------------


def check_source(config: Config, source: Config) -> None:
    """Raise `Fault` if `config` cannot use the parameters that are selected in the experiment
    `source`.
    """
    for name, machine in config.machines.items():
        if machine.grid or machine.use:
            message = f"must be removed, since {name} takes its parameters from parameters_from"
            raise Fault(message, "machines", name, "grid" if machine.grid else "use")
        if machine.calibrate and source.select.scope == "pair":
            message = f"needs one parameter set for all pairs, and {source.name} has scope: pair"
            raise Fault(message, "machines", name, "calibrate")
    for problem in _source_problems(config, source):
        raise Fault(f"{source.name} {problem}", "parameters_from")


def _source_problems(config: Config, source: Config) -> Iterator[str]:
    if source.parameters_from is not None:
        yield "takes its own parameters from another experiment"
    rule, known = config.protocol.test.rule, {entry.label: entry for entry in source.datasets}
    one_choice = config.parameters_from is not None and config.parameters_from.splits is not None
    given = rule == "predefined" and not one_choice

    def read(experiment: Config, entry: DatasetEntry) -> DatasetRef:
        ref = entry.ref(experiment.steps_of(entry))
        options = tuple(pair for pair in ref.options if not pair[0].startswith("max_"))
        return replace(ref, options=options, folds=ref.folds if given else None)

    for entry in config.datasets:
        if entry.label not in known:
            yield f"does not have data set {entry.label!r}"
        elif read(config, entry) != read(source, known[entry.label]):
            yield f"has other preprocessing, rows, columns or classes of {entry.label!r}"
    for name in config.machines:
        theirs = source.kernels_of(name) if name in source.machines else ()
        if not set(config.kernels_of(name)) <= set(theirs):
            yield f"does not run {name} with these kernels"
    if not set(config.degree or ()) <= set(source.degree or ()):
        yield "does not have all degrees"
    for key, kernel in (("gamma_scaling", "rbf"), ("kernel_scaling", "poly")):
        if kernel in config.kernel and getattr(config, key) != getattr(source, key):
            yield f"has another {key}, so that its parameters have another meaning"
    protocol, other = config.protocol, source.protocol
    if not one_choice and (protocol.repeats or 1) > (other.repeats or 1):
        yield "has fewer repeats"
    given = given and all(entry.ref(()).splits_source for entry in config.datasets)
    fixed = given or rule in ("official", "leave_one_out", "time_series")
    random = protocol.seed != other.seed and not fixed
    if not one_choice and (random or protocol.test != other.test):
        yield "has other splits, whose training rows may be test rows here; use its test and seed"
    if len(other.subsets) > 1:
        yield "has several training sizes"
    if len(other.seed) > 1 or len(protocol.seed) > 1:
        yield "and this experiment must have one seed each, not a list of seeds"


def _check_published(config: Config) -> None:
    own = {row.get("machine", "") for row in config.published}
    known = {*MACHINES, *ALIASES, *published_machines(), *own} if config.published_only else set()
    for k, name in enumerate(config.published_only):
        with at("published_only", k):
            check_known(name, known, "no published table has machine")
            if name in config.machines:
                raise ValueError(f"{name!r} is also a machine of this experiment")
    if config.published:
        _check_own_table(config)
        return
    for k, entry in enumerate(config.datasets):
        if entry.published_as:
            known = {r["dataset"] for table in published_tables() for r in published_rows(table)}
            keys = ("datasets", k, "published_as")
            check_known(entry.published_as, known, "no published table has data set", *keys)


def _check_own_table(config: Config) -> None:
    """Raise `Fault` if a name in the user's published table or in the configuration is unknown."""
    datasets = {row["dataset"] for row in config.published}
    for k, entry in enumerate(config.datasets):
        name = config.published_names.get(entry.label, entry.label)
        if name and name not in datasets:
            key = "published_as" if entry.published_as else "name"
            hint = f"{did_you_mean(name, datasets)} (published_as: '' compares nothing)"
            raise Fault(f"published has no data set {name!r}{hint}", "datasets", k, key)
    machines = [*config.machines, *config.published_only]
    metrics = {*AVERAGED, BOUND, WORST_CLASS, *METRICS, *PRINTED_ERRORS} - {ACCURACY}
    for k, row in enumerate(config.published, 1):
        if not is_result(row):
            continue
        check_known(row["metric"], metrics, f"row {k}: unknown metric", "published")
        if (machine := row["machine"]) not in machines:
            hint = f"{did_you_mean(machine, machines)} (published_only: [{machine}] shows it)"
            raise Fault(f"row {k}: the experiment has no machine {machine!r}{hint}", "published")
    if len(config.protocol.subsets) > 1:
        raise Fault("cannot be compared with several training sizes", "published")
    keys = {(*key[:4],) for key, _ in table_cells(config)}
    rows = comparable(placed_rows(config), config.published_names)
    if not any((r["dataset"], r["kernel"], r["degree"], r["machine"]) in keys for r in rows):
        raise Fault("no row belongs to a machine, data set and kernel here", "published")


# -- data sets ---------------------------------------------------------------------------------


def _check_datasets(config: Config, columns: list[MachineColumn]) -> None:
    known = card_names()
    grids = {parameter for machine in config.machines.values() for parameter in machine.grid}
    with at("datasets"):
        distinct([e.label for e in config.datasets], hint="; a file can have another 'name'")
    for k, entry in enumerate(config.datasets):
        name, steps = entry.label, config.steps_of(entry)
        dividing = {config.protocol.test.rule, config.select.validation} & {"time_series", "rest"}
        with at("datasets", k):
            if entry.source is None and entry.name is None:
                raise ValueError("give the name of a card, or path and target of a file")
            if not re.fullmatch(NAME_PATTERN, name):
                raise ValueError(f"{name!r} cannot be a name in tables; add a 'name'")
            if entry.table.groups is not None and dividing:
                raise Fault(f"{min(dividing)} would divide groups; remove one of them", "groups")
            if entry.source is not None and name in known:
                raise ValueError(f"{name!r} is the name of a card; give the file another 'name'")
            if entry.source is None and name not in known:
                hint = f"; {OWN_FILE}" if "." in name else did_you_mean(name, known)
                raise ValueError(f"unknown data set {name!r}{hint}")
        # `split_slots` raises an error if the data set does not define the splits that the rule
        # needs
        with at("protocol", "test"):
            split_slots(config.protocol.test.spec, entry.ref(()), config.protocol.repeats)
        card = entry.ref(steps).card
        if card and (problem := check_steps(steps, card.expect.shape[1])):
            section = () if entry.preprocess is None else ("datasets", k)
            raise Fault(problem, *section, "preprocess")
        if card and len(card.expect.classes) == card.expect.n_classes:
            # the classes in a user's file are known only after the file is read
            with at("datasets", k, "classes"):
                check_classes(entry.classes, card.expect.classes, name)
        for parameter, axis in entry.grid.items():
            with at("datasets", k, "grid", parameter):
                check_known(parameter, grids, "no machine here has a grid of")
                for column in columns:
                    if parameter in column.entry.grid:
                        column.check_axis(parameter, axis)
