"""What the columns of a configuration must agree on with the machines that they name.

What a configuration must agree on with machines, data sets and layouts, before data are read.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mmbench.config.faults import Fault, at
from mmbench.config.grids import AUTO, KERNEL_PARAMETERS, Axis, in_other_words, replaced_by
from mmbench.config.model import NAME_PATTERN, Config, DatasetEntry, MachineEntry
from mmbench.datasets import card_names, check_classes, check_steps, load_card, split_slots
from mmbench.datasets.dataset import Steps
from mmbench.errors import did_you_mean
from mmbench.machines import ALIASES, MACHINES, Alias, alias_of, machine_class
from mmbench.machines.base.foreign import ForeignClassifier
from mmbench.machines.base.joint_training import JointClassifier
from mmbench.tables.layouts import LAYOUTS, check_any_metric, check_sized
from mmbench.tables.published import published_machines, published_rows, published_tables

#: Parameters that the experiment sets for all machines, and what sets them in its YAML file.
EXPERIMENT_KEYS = {
    "kernel": "machines.{column}.kernel",
    "gamma_scaling": "the experiment's key 'gamma_scaling'",
    "kernel_scaling": "the experiment's key 'kernel_scaling'",
    "ties": "the experiment's key 'ties'",
    "random_state": "protocol.seed",
    "n_jobs": "the option --jobs",
}


@dataclass(frozen=True)
class MachineColumn:
    """A column of an experiment's tables, and the machine that it stands for."""

    name: str
    machine: str
    cls: Any
    alias: Alias
    kernels: list[str]

    @property
    def foreign(self) -> bool:
        """Whether it is a classifier that solves no problem of this package."""
        return issubclass(self.cls, ForeignClassifier)

    def check_parameter(self, parameter: str) -> None:
        """Refuse a parameter that the machine lacks or that is not the column's to set."""
        if parameter in EXPERIMENT_KEYS:
            key = EXPERIMENT_KEYS[parameter].format(column=self.name)
            raise ValueError(f"{parameter} is set by {key}")
        own = set(self.cls.parameters) - set(EXPERIMENT_KEYS)
        if parameter not in own:
            hint = did_you_mean(parameter, own)
            raise ValueError(f"{self.machine} has no parameter {parameter!r}{hint}")
        means = in_other_words(self.cls).get(parameter, parameter)
        if means in self.alias.params:  # its column in a table would lie
            given = f"{means} is {self.alias.params[means]!r} in {self.machine} by definition"
            raise ValueError(f"{given}; {self.alias.machine} takes other values")
        if not self.foreign:
            check_relevant(parameter, self.kernels)

    def check_value(self, parameter: str, value: Any) -> None:
        """Refuse a value outside the machine's declaration."""
        problem = self.cls.parameters[parameter].problem(value)
        if problem:
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
    """Refuse a width without an rbf kernel: the user believes that it does something."""
    needs = KERNEL_PARAMETERS.get(parameter)
    if needs and needs not in kernels:
        names = " and ".join(kernels)
        raise ValueError(f"{parameter} has no effect: the kernel is {names}, not {needs}")


def check_machines(config: Config) -> None:
    """Refuse columns without a machine, or whose settings it does not take.

    Raises
    ------
    Fault
    """
    for name, entry in config.machines.items():
        _check_name(name, config.machine_of(name))
        with at("machines", name, "machine" if entry.estimator is None else "estimator"):
            machine_class(config.machine_of(name))
    for column in columns(config):
        _check_column(column, config.machines[column.name])
    before: list[str] = []
    for name, entry in config.machines.items():
        if entry.use is not None:
            _check_parent(config, name, entry.use, before)
        before.append(name)
    _check_prefer(config)
    _check_scope(config)
    _check_calibration(config)


def _check_name(name: str, machine: str) -> None:
    """Refuse a column without a machine, or with the name of another machine."""
    known = (*MACHINES, *ALIASES)
    if machine == name:
        if name not in known:
            hint = did_you_mean(name, known)
            own = "a column with a name of its own says its machine: {machine: NAME}"
            raise Fault(f"unknown machine {name!r}{hint} ({own})", "machines", name)
    elif name in known:
        message = f"{name!r} is the name of another machine; give this column another name"
        raise Fault(message, "machines", name)
    elif not re.fullmatch(NAME_PATTERN, name):
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
    _check_stated_once(column, entry)


def _check_stated_once(column: MachineColumn, entry: MachineEntry) -> None:
    """Refuse a parameter that is both fixed and searched, or stated in two ways."""
    stated = dict.fromkeys(entry.grid, "grid")
    for parameter in entry.params:
        if parameter in stated:
            message = f"{parameter} is also in the column's grid"
            raise Fault(message, "machines", column.name, "params", parameter)
        stated[parameter] = "params"
    for parameter, other in replaced_by(column.cls, stated).items():
        if parameter in stated:
            keys = ("machines", column.name, stated[other], other)
            raise Fault(f"{parameter} and {other} exclude each other", *keys)


def _check_parent(config: Config, name: str, parent: str, before: list[str]) -> None:
    keys = ("machines", name, "use")
    if parent not in config.machines:
        known = did_you_mean(parent, before) if before else ""
        raise Fault(f"{parent!r} is not among the machines of this experiment{known}", *keys)
    chain = _use_chain(config, name)
    if chain[-1] in chain[:-1]:
        raise Fault(f"the machines use each other in a circle: {' -> '.join(chain)}", *keys)
    if parent not in before:
        raise Fault(f"{parent!r} must be listed before {name!r}", *keys)
    lacking = set(config.kernels_of(name)) - set(config.kernels_of(parent))
    if lacking:
        raise Fault(f"{parent} does not run with kernel {min(lacking)}", *keys)


def _use_chain(config: Config, name: str) -> list[str]:
    """Return a machine, the one it uses, and so on, up to the first repetition."""
    chain = [name]
    while chain[-1] in config.machines and chain[-1] not in chain[:-1]:
        parent = config.machines[chain[-1]].use
        if parent is None:
            break
        chain.append(parent)
    return chain


def _check_prefer(config: Config) -> None:
    declared = {p: d for column in columns(config) for p, d in column.cls.parameters.items()}
    known = {p for p, d in declared.items() if d.numeric and p not in EXPERIMENT_KEYS}
    for parameter in config.select.prefer:
        if parameter not in known:
            message = f"no machine here has this parameter{did_you_mean(parameter, known)}"
            raise Fault(message, "select", "prefer", parameter)


def _check_scope(config: Config) -> None:
    for column in columns(config) if config.select.scope == "pair" else ():
        if column.foreign or issubclass(column.cls, JointClassifier):
            message = f"{column.name} has one parameter set for all class pairs"
            raise Fault(f"{message}; use scope: global", "select", "scope")


def _check_calibration(config: Config) -> None:
    """Refuse probabilities where scikit-learn cannot make them."""
    for name, entry in config.machines.items():
        keys = ("machines", name, "calibrate")
        if entry.calibrate and (config.source or config).select.scope == "pair":
            message = "has one parameter set for all class pairs; use scope: global"
            raise Fault(f"what is calibrated {message}", *keys)
        if entry.calibrate and config.protocol.test.rule == "time_series":
            raise Fault("needs folds of all training rows, which time_series does not give", *keys)


def check(config: Config) -> None:
    """Refuse a configuration that could not run as it is written.

    Raises
    ------
    Fault
    """
    check_machines(config)
    _check_shared_kernel_keys(config)
    _check_validation(config)
    _check_datasets(config)
    _check_published(config)
    _check_published_names(config)
    _check_layout(config)


# -- keys that speak for all machines ----------------------------------------------------------


def _check_shared_kernel_keys(config: Config) -> None:
    kernels = sorted({k for column in columns(config) for k in column.kernels})
    degrees = config.degree or []
    if twice := {degree for degree in degrees if degrees.count(degree) > 1}:
        raise Fault(f"degree {min(twice)} occurs twice", "degree")
    stated = {"gamma_scaling": config.gamma_scaling, "kernel_scaling": config.kernel_scaling}
    for key in [key for key, value in stated.items() if value != "none"]:
        with at(key):
            check_relevant(key, kernels)
            _check_has(key, config)
    if config.degree is not None:
        with at("degree"):
            check_relevant("degree", kernels)
        for name, entry in config.machines.items():
            for part in ("params", "grid"):
                if "degree" in getattr(entry, part):
                    message = "degree is also a key of the experiment"
                    raise Fault(message, "machines", name, part, "degree")


def _check_has(parameter: str, config: Config) -> None:
    """Refuse what some machine would silently go without."""
    for column in columns(config):
        if not column.foreign and parameter not in column.cls.parameters:
            raise ValueError(f"{column.machine} has no parameter {parameter!r}")


def check_source(config: Config, source: Config) -> None:
    """Refuse a source of parameters that has no job for one of ours.

    Raises
    ------
    Fault
    """
    keys = ("parameters_from",)
    if source.parameters_from is not None:
        raise Fault(f"{source.name} takes its own parameters from another experiment", *keys)
    theirs = {entry.label for entry in source.datasets}
    for entry in config.datasets:
        if entry.label not in theirs:
            raise Fault(f"{source.name} does not have data set {entry.label!r}", *keys)
    for name, machine in config.machines.items():
        if machine.grid or machine.use:
            own = "grid" if machine.grid else "use"
            message = f"the parameters of {name} come from parameters_from"
            raise Fault(message, "machines", name, own)
        lacking = name not in source.machines or not (
            set(config.kernels_of(name)) <= set(source.kernels_of(name))
        )
        if lacking:
            raise Fault(f"{source.name} does not run {name} with these kernels", *keys)
    if not set(config.degree or ()) <= set(source.degree or ()):
        raise Fault(f"{source.name} does not have all degrees", *keys)
    one_choice = config.parameters_from is not None and config.parameters_from.splits is not None
    if not one_choice and (config.protocol.repeats or 1) > (source.protocol.repeats or 1):
        raise Fault(f"{source.name} has fewer repeats", *keys)
    if len(source.protocol.subsets) > 1:
        raise Fault(f"{source.name} has several training sizes", *keys)
    if len(source.protocol.seeds) > 1 or len(config.protocol.seeds) > 1:
        raise Fault("parameters are taken over for one seed, not for a list", *keys)
    classes = {entry.label: entry.classes for entry in source.datasets}
    for entry in config.datasets:
        if entry.classes != classes[entry.label]:
            raise Fault(f"{source.name} has other classes of {entry.label!r}", *keys)


def _check_validation(config: Config) -> None:
    if config.select.validation == "rest" and config.protocol.max_train is None:
        message = "validation: rest needs protocol.max_train, which leaves rows for it"
        raise Fault(message, "select", "validation")


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


def _check_published_names(config: Config) -> None:
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
    for k, entry in enumerate(config.datasets):
        _check_source(config, entry, k)
        if entry.preprocess is None:
            _check_steps(config.preprocess, entry, "preprocess")
        else:
            _check_steps(entry.preprocess, entry, "datasets", k, "preprocess")
        _check_classes(entry, "datasets", k, "classes")
        for parameter, axis in entry.grid.items():
            _check_override(config, parameter, axis, "datasets", k, "grid", parameter)
        if entry.label in names:
            raise Fault(f"{entry.label!r} occurs twice", "datasets", k)
        names.append(entry.label)


def _check_source(config: Config, entry: DatasetEntry, k: int) -> None:
    known = card_names()
    if entry.source is None:
        if entry.label not in known:
            hint = did_you_mean(entry.label, known)
            if "." in entry.label:
                hint = "; a file of your own is {path: FILE, target: COLUMN}"
            raise Fault(f"unknown data set {entry.label!r}{hint}", "datasets", k)
    elif entry.label in known:
        message = f"{entry.label!r} is the name of a card; give the file another name with 'name'"
        raise Fault(message, "datasets", k)
    _check_rule(config, entry)


def _check_rule(config: Config, entry: DatasetEntry) -> None:
    """Refuse ``official`` and ``predefined`` for data that come without such splits."""
    protocol = config.protocol
    with at("protocol", "test"):
        split_slots(protocol.test.spec, entry.ref(()), protocol.repeats)


def _check_steps(steps: Steps, entry: DatasetEntry, *keys: Any) -> None:
    card = entry.ref(steps).card
    if card and (problem := check_steps(steps, card.n_features)):
        raise Fault(problem, *keys)


def _check_classes(entry: DatasetEntry, *keys: Any) -> None:
    """Refuse a class that the card does not have; a user's file is judged when it is read."""
    if entry.source is None:
        expect = load_card(entry.label).expect
        if len(expect.classes) == expect.n_classes:
            with at(*keys):
                check_classes(entry.classes, expect.classes)


def _check_override(config: Config, parameter: str, axis: Axis, *keys: Any) -> None:
    owners = [c for c in columns(config) if parameter in config.machines[c.name].grid]
    if not owners:
        known = {p for entry in config.machines.values() for p in entry.grid}
        message = f"no machine here has a grid of {parameter!r}{did_you_mean(parameter, known)}"
        raise Fault(message, *keys)
    for column in owners:
        with at(*keys):
            column.check_axis(parameter, axis)
