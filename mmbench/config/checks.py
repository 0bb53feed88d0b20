"""Checks of a configuration against machines, data sets and layouts, before data are read.

All checks raise `Fault`, with the path of keys that leads to the fault.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from mmbench.config.faults import Fault, at
from mmbench.config.grids import (
    AUTO,
    KERNEL_PARAMETERS,
    Axis,
    expand_auto,
    in_other_words,
    replaced_by,
)
from mmbench.config.model import NAME_PATTERN, Config, DatasetEntry, MachineEntry
from mmbench.datasets import card_names, check_classes, check_steps, load_card, split_slots
from mmbench.datasets.dataset import Steps
from mmbench.errors import did_you_mean
from mmbench.machines import ALIASES, MACHINES, Alias, alias_of, machine_class
from mmbench.machines.base.foreign import ForeignClassifier
from mmbench.machines.base.joint_training import JointClassifier
from mmbench.selection.grid import staged
from mmbench.tables.layouts import LAYOUTS, check_any_metric, check_sized
from mmbench.tables.published import published_machines, published_rows, published_tables

#: Parameters that the experiment sets for all machines, and the key or option that sets each.
EXPERIMENT_KEYS = {
    "kernel": "machines.{column}.kernel",
    "gamma_scaling": "the experiment's key 'gamma_scaling'",
    "kernel_scaling": "the experiment's key 'kernel_scaling'",
    "ties": "the experiment's key 'ties'",
    "random_state": "protocol.seed",
    "n_jobs": "the option --jobs",
}


def check(config: Config) -> None:
    """Refuse a configuration that could not run as it is written."""
    _check_number_of_jobs(config)
    _check_machines(config)
    _check_shared_kernel_keys(config)
    if config.select.validation == "rest" and config.protocol.max_train is None:
        message = "validation: rest needs protocol.max_train, which leaves rows for it"
        raise Fault(message, "select", "validation")
    _check_datasets(config)
    _check_grid_points(config)
    _check_published(config)
    _check_layout(config)


def _check_number_of_jobs(config: Config) -> None:
    """Refuse experiments whose plan alone would take minutes; each is counted, none is made."""
    protocol = config.protocol
    folds = protocol.test.arg if protocol.test.rule in ("kfold", "time_series") else None
    splits = int(folds or 1) * (protocol.repeats or 1) * len(protocol.seeds)
    degrees = len(config.degree or [None])
    columns = sum(
        degrees if kernel == "poly" else 1
        for name in config.machines
        for kernel in config.kernels_of(name)
    )
    n_jobs = len(config.datasets) * columns * splits * len(protocol.subsets)
    if n_jobs > config.limits.jobs:
        most = f"an experiment of more than {config.limits.jobs} needs"
        raise Fault(f"makes {n_jobs} jobs; {most} --set limits.jobs={n_jobs}", "protocol")


# -- machines ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MachineColumn:
    """A column of an experiment's tables, and its machine."""

    name: str
    machine: str
    cls: Any
    alias: Alias
    kernels: list[str]

    @property
    def foreign(self) -> bool:
        """Whether the classifier solves no problem of this package."""
        return issubclass(self.cls, ForeignClassifier)

    def check_parameter(self, parameter: str) -> None:
        """Refuse a parameter that the machine lacks or that the column cannot set."""
        if parameter in EXPERIMENT_KEYS:
            key = EXPERIMENT_KEYS[parameter].format(column=self.name)
            raise ValueError(f"{parameter} is set by {key}")
        own = set(self.cls.parameters) - set(EXPERIMENT_KEYS)
        if parameter not in own:
            hint = did_you_mean(parameter, own)
            raise ValueError(f"{self.machine} has no parameter {parameter!r}{hint}")
        means = in_other_words(self.cls).get(parameter, parameter)
        if means in self.alias.params:  # the name of the column would be wrong
            given = f"{means} is {self.alias.params[means]!r} in {self.machine} by definition"
            raise ValueError(f"{given}; {self.alias.machine} takes other values")
        if not self.foreign:
            check_relevant(parameter, self.kernels)

    def check_value(self, parameter: str, value: Any) -> None:
        """Refuse a value outside the machine's declaration."""
        if problem := self.cls.parameters[parameter].problem(value):
            raise ValueError(problem)

    def check_axis(self, parameter: str, axis: Axis) -> None:
        """Refuse an axis that the machine cannot search."""
        self.check_parameter(parameter)
        if axis == AUTO:
            known = self.cls.search_space.auto_grids
            if parameter not in known:
                message = f"{self.machine} has no automatic grid for {parameter}; list the values"
                raise ValueError(message + f" (automatic: {', '.join(known)})" * bool(known))
            return
        for value in axis:
            text = value is None or isinstance(value, str)
            if text and self.cls.parameters[parameter].numeric:
                raise ValueError(f"a grid of {parameter} holds numbers, got {value!r}")
            self.check_value(parameter, value)


def columns(config: Config) -> Iterator[MachineColumn]:
    """Yield the columns of an experiment whose machines are known to exist."""
    for name in config.machines:
        machine = config.machine_of(name)
        cls, alias = machine_class(machine), alias_of(machine)
        yield MachineColumn(name, machine, cls, alias, config.kernels_of(name))


def check_relevant(parameter: str, kernels: Iterable[str]) -> None:
    """Refuse a parameter of a kernel that does not occur: the user would believe in an effect."""
    needs = KERNEL_PARAMETERS.get(parameter)
    if needs and needs not in kernels:
        names = " and ".join(kernels)
        raise ValueError(f"{parameter} has no effect: the kernel is {names}, not {needs}")


def _check_machines(config: Config) -> None:
    for name, entry in config.machines.items():
        _check_name(name, config.machine_of(name))
        with at("machines", name, "machine" if entry.estimator is None else "estimator"):
            machine_class(config.machine_of(name))
    before: list[str] = []
    for column in columns(config):
        entry = config.machines[column.name]
        _check_column(column, entry)
        if entry.use is not None:
            _check_parent(config, column.name, entry.use, before)
        if entry.calibrate:
            keys = ("machines", column.name, "calibrate")
            if (config.source or config).select.scope == "pair":
                message = "probabilities need one parameter set for all class pairs; "
                raise Fault(message + "use scope: global", *keys)
            if config.protocol.test.rule == "time_series":
                raise Fault("needs folds of all training rows, not time_series", *keys)
        joint = column.foreign or issubclass(column.cls, JointClassifier)
        if config.select.scope == "pair" and joint:
            message = f"{column.name} has one parameter set for all class pairs"
            raise Fault(f"{message}; use scope: global", "select", "scope")
        before.append(column.name)
    declared = {p: d for column in columns(config) for p, d in column.cls.parameters.items()}
    known = {p for p, d in declared.items() if d.numeric and p not in EXPERIMENT_KEYS}
    for parameter in config.select.prefer:
        if parameter not in known:
            message = f"no machine here has this parameter{did_you_mean(parameter, known)}"
            raise Fault(message, "select", "prefer", parameter)


def _check_name(name: str, machine: str) -> None:
    """Refuse a column without a machine, or with the name of another machine."""
    known = (*MACHINES, *ALIASES)
    if machine == name and name not in known:
        hint = did_you_mean(name, known)
        own = "a column with a name of its own says its machine: {machine: NAME}"
        raise Fault(f"unknown machine {name!r}{hint} ({own})", "machines", name)
    if machine != name and name in known:
        message = f"{name!r} is the name of another machine; give this column another name"
        raise Fault(message, "machines", name)
    if machine != name and not re.fullmatch(NAME_PATTERN, name):
        raise Fault(f"{name!r} cannot name a column of a table", "machines", name)


def _check_column(column: MachineColumn, entry: MachineEntry) -> None:
    name = column.name
    for kernel in column.kernels:
        if kernel not in column.cls.kernels:
            hint = did_you_mean(kernel, column.cls.kernels)
            keys = ("machines", name, "kernel") if entry.kernel else ("kernel",)
            raise Fault(f"{column.machine} has no kernel {kernel!r}{hint}", *keys)
    for parameter, axis in entry.grid.items():
        with at("machines", name, "grid", parameter):
            column.check_axis(parameter, axis)
    for parameter, value in entry.params.items():
        with at("machines", name, "params", parameter):
            column.check_parameter(parameter)
            column.check_value(parameter, value)
            if parameter in entry.grid:
                raise ValueError(f"{parameter} is also in the column's grid")
    stated = {**dict.fromkeys(entry.grid, "grid"), **dict.fromkeys(entry.params, "params")}
    for parameter, other in replaced_by(column.cls, stated).items():
        if parameter in stated:
            message = f"{parameter} and {other} exclude each other"
            raise Fault(message, "machines", name, stated[other], other)


def _check_grid_points(config: Config) -> None:
    most = config.limits.grid_points
    for column in columns(config):
        grid = config.machines[column.name].grid
        for entry in config.datasets if grid else ():
            axes = {**grid, **{name: entry.grid[name] for name in grid if name in entry.grid}}
            parts = staged(expand_auto(column.cls, axes), column.alias.stages)
            points = sum(prod(map(len, part.values())) for part in parts)
            if points > most:
                message = f"has {points} grid points; more than {most} need"
                option = f"--set limits.grid_points={points}"
                raise Fault(f"{message} {option}", "machines", column.name, "grid")


def _check_parent(config: Config, name: str, parent: str, before: list[str]) -> None:
    keys = ("machines", name, "use")
    if parent not in config.machines:
        known = did_you_mean(parent, before) if before else ""
        raise Fault(f"{parent!r} is not among the machines of this experiment{known}", *keys)
    chain, following = [name], config.machines[name].use
    while following is not None and following in config.machines:
        chain.append(following)
        if following in chain[:-1]:
            circle = " -> ".join(chain)
            raise Fault(f"the machines use each other in a circle: {circle}", *keys)
        following = config.machines[following].use
    if parent not in before:
        raise Fault(f"{parent!r} must be listed before {name!r}", *keys)
    lacking = set(config.kernels_of(name)) - set(config.kernels_of(parent))
    if lacking:
        raise Fault(f"{parent} does not run with kernel {min(lacking)}", *keys)


def _check_shared_kernel_keys(config: Config) -> None:
    kernels = sorted({k for column in columns(config) for k in column.kernels})
    degrees = config.degree or []
    if twice := {degree for degree in degrees if degrees.count(degree) > 1}:
        raise Fault(f"degree {min(twice)} occurs twice", "degree")
    stated = {"gamma_scaling": config.gamma_scaling, "kernel_scaling": config.kernel_scaling}
    for key in [key for key, value in stated.items() if value != "none"]:
        with at(key):
            check_relevant(key, kernels)
            for column in columns(config):  # no machine silently goes without it
                if not column.foreign and key not in column.cls.parameters:
                    raise ValueError(f"{column.machine} has no parameter {key!r}")
    if config.degree is not None:
        with at("degree"):
            check_relevant("degree", kernels)
        for name, entry in config.machines.items():
            for part, names in (("params", entry.params), ("grid", entry.grid)):
                if "degree" in names:
                    message = "degree is also a key of the experiment"
                    raise Fault(message, "machines", name, part, "degree")


# -- other experiments and published tables ----------------------------------------------------


def check_source(config: Config, source: Config) -> None:
    """Refuse a source of parameters that has no job for one of ours."""
    for name, machine in config.machines.items():
        if machine.grid or machine.use:
            message = f"the parameters of {name} come from parameters_from"
            raise Fault(message, "machines", name, "grid" if machine.grid else "use")
    if problem := _source_problem(config, source):
        raise Fault(problem, "parameters_from")


def _source_problem(config: Config, source: Config) -> str | None:
    if source.parameters_from is not None:
        return f"{source.name} takes its own parameters from another experiment"
    classes = {entry.label: entry.classes for entry in source.datasets}
    for entry in config.datasets:
        if entry.label not in classes:
            return f"{source.name} does not have data set {entry.label!r}"
        if entry.classes != classes[entry.label]:
            return f"{source.name} has other classes of {entry.label!r}"
    for name in config.machines:
        theirs = source.kernels_of(name) if name in source.machines else ()
        if not set(config.kernels_of(name)) <= set(theirs):
            return f"{source.name} does not run {name} with these kernels"
    if not set(config.degree or ()) <= set(source.degree or ()):
        return f"{source.name} does not have all degrees"
    one_choice = config.parameters_from is not None and config.parameters_from.splits is not None
    if not one_choice and (config.protocol.repeats or 1) > (source.protocol.repeats or 1):
        return f"{source.name} has fewer repeats"
    if len(source.protocol.subsets) > 1:
        return f"{source.name} has several training sizes"
    if len(source.protocol.seeds) > 1 or len(config.protocol.seeds) > 1:
        return "parameters are taken over for one seed, not for a list"
    return None


def _check_published(config: Config) -> None:
    known = {*MACHINES, *ALIASES, *published_machines()} if config.published_only else set()
    for k, name in enumerate(config.published_only):
        if name not in known:
            hint = did_you_mean(name, known)
            raise Fault(f"no published table has machine {name!r}{hint}", "published_only", k)
        if name in config.machines:
            raise Fault(f"{name!r} is among the machines that run", "published_only", k)
        if name in config.published_only[:k]:
            raise Fault(f"{name!r} occurs twice", "published_only", k)
    for k, entry in enumerate(config.datasets):
        if entry.published_as is not None:
            known = {r["dataset"] for table in published_tables() for r in published_rows(table)}
            if entry.published_as not in known:
                hint = did_you_mean(entry.published_as, known)
                message = f"no published table has data set {entry.published_as!r}{hint}"
                raise Fault(message, "datasets", k, "published_as")


def _check_layout(config: Config) -> None:
    if config.layout not in LAYOUTS:
        hint = did_you_mean(config.layout, LAYOUTS)
        raise Fault(f"unknown layout {config.layout!r}{hint}", "layout")
    if len(config.protocol.subsets) > 1:
        with at("layout"):
            check_sized(config.layout)
    if config.metrics:
        with at("metrics"):
            check_any_metric(config.layout, config.metrics)


# -- data sets ---------------------------------------------------------------------------------


def _check_datasets(config: Config) -> None:
    names: list[str] = []
    known = card_names()
    for k, entry in enumerate(config.datasets):
        if entry.source is None and entry.label not in known:
            hint = did_you_mean(entry.label, known)
            if "." in entry.label:
                hint = "; a file of your own is {path: FILE, target: COLUMN}"
            raise Fault(f"unknown data set {entry.label!r}{hint}", "datasets", k)
        if entry.source is not None and entry.label in known:
            other = f"{entry.label!r} is the name of a card"
            raise Fault(f"{other}; give the file another name with 'name'", "datasets", k)
        with at("protocol", "test"):  # official and predefined splits may not exist
            split_slots(config.protocol.test.spec, entry.ref(()), config.protocol.repeats)
        if entry.preprocess is None:
            _check_steps(config.preprocess, entry, "preprocess")
        else:
            _check_steps(entry.preprocess, entry, "datasets", k, "preprocess")
        if entry.source is None:  # the classes of a user's file are checked when it is read
            expect = load_card(entry.label).expect
            if len(expect.classes) == expect.n_classes:
                with at("datasets", k, "classes"):
                    check_classes(entry.classes, expect.classes)
        for parameter, axis in entry.grid.items():
            owners = [c for c in columns(config) if parameter in config.machines[c.name].grid]
            with at("datasets", k, "grid", parameter):
                if not owners:
                    grids = {p for machine in config.machines.values() for p in machine.grid}
                    hint = did_you_mean(parameter, grids)
                    raise ValueError(f"no machine here has a grid of {parameter!r}{hint}")
                for column in owners:
                    column.check_axis(parameter, axis)
        if entry.label in names:
            raise Fault(f"{entry.label!r} occurs twice", "datasets", k)
        names.append(entry.label)


def _check_steps(steps: Steps, entry: DatasetEntry, *keys: Any) -> None:
    card = entry.ref(steps).card
    if card and (problem := check_steps(steps, card.n_features)):
        raise Fault(problem, *keys)
