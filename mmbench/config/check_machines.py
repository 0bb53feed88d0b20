"""What the columns of a configuration must agree on with the machines that they name."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mmbench.config.faults import Fault, at
from mmbench.config.grids import AUTO, KERNEL_PARAMETERS, Axis, in_other_words, replaced_by
from mmbench.config.model import NAME_PATTERN, Config, MachineEntry
from mmbench.errors import did_you_mean
from mmbench.machines import ALIASES, MACHINES, Alias, alias_of, machine_class
from mmbench.machines.base.foreign import ForeignClassifier
from mmbench.machines.base.joint_training import JointClassifier

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
class Column:
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


def columns(config: Config) -> Iterator[Column]:
    """Yield the columns of an experiment whose machines are known to exist."""
    for name in config.machines:
        machine = config.machine_of(name)
        cls, alias = machine_class(machine), alias_of(machine)
        yield Column(name, machine, cls, alias, config.kernels_of(name))


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


def _check_column(column: Column, entry: MachineEntry) -> None:
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


def _check_stated_once(column: Column, entry: MachineEntry) -> None:
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
