"""What a configuration must agree on with machines, data sets and layouts, before data are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mmbench.config.grids import (
    EXPERIMENT_KEYS,
    KERNEL_PARAMETERS,
    Axis,
    check_axis,
    check_parameter,
    check_value,
    replaced_by,
)
from mmbench.config.model import NAME_PATTERN, Config, DatasetEntry, MachineEntry
from mmbench.datasets import card_names, check_classes, check_steps, load_card, split_slots
from mmbench.datasets.reference import Steps
from mmbench.errors import UserError, did_you_mean
from mmbench.machines import ALIASES, MACHINES, Alias, alias_of, machine_class


class Fault(Exception):
    """A fault in a configuration, with the path of keys that leads to it."""

    def __init__(self, message: str, *keys: Any):
        super().__init__(message)
        self.keys = keys


@contextmanager
def at(*keys: Any) -> Iterator[None]:
    """Name the place of a fault that a check below reports without one."""
    try:
        yield
    except (ValueError, UserError) as error:
        raise Fault(str(error), *keys) from None


def check(config: Config) -> None:
    """Refuse a configuration that could not run as it is written.

    Raises
    ------
    Fault
    """
    for column, entry in config.machines.items():
        _check_name(column, entry)
        _check_machine(config, column, entry)
    _check_use(config)
    _check_shared_kernel_keys(config)
    _check_prefer(config)
    _check_scope(config)
    _check_validation(config)
    _check_datasets(config)
    _check_published(config)
    _check_published_names(config)
    _check_layout(config)


# -- machines ----------------------------------------------------------------------------------


def _check_name(column: str, entry: MachineEntry) -> None:
    """Refuse a column without a machine, or with the name of another machine."""
    known = (*MACHINES, *ALIASES)
    if entry.machine is None:
        if column not in known:
            hint = did_you_mean(column, known)
            own = "a column with a name of its own says its machine: {machine: NAME}"
            raise Fault(f"unknown machine {column!r}{hint} ({own})", "machines", column)
    elif entry.machine != column and column in known:
        message = f"{column!r} is the name of another machine; give this column another name"
        raise Fault(message, "machines", column)
    elif not re.fullmatch(NAME_PATTERN, column):
        raise Fault(f"{column!r} cannot name a column of a table", "machines", column)


def _check_machine(config: Config, column: str, entry: MachineEntry) -> None:
    machine = config.machine_of(column)
    with at("machines", column, "machine"):
        cls, alias = machine_class(machine), alias_of(machine)
    _check_kernels(config, column, cls)
    for parameter, axis in entry.grid.items():
        with at("machines", column, "grid", parameter):
            check_axis(cls, machine, parameter, axis)
            _check_not_fixed(alias, machine, parameter, cls)
            _check_relevant(parameter, config.kernels_of(column))
    for parameter, value in entry.params.items():
        with at("machines", column, "params", parameter):
            check_parameter(cls, machine, parameter)
            check_value(cls, parameter, value)
            _check_not_fixed(alias, machine, parameter, cls)
            _check_relevant(parameter, config.kernels_of(column))
    _check_stated_once(column, entry, cls)


def _check_kernels(config: Config, column: str, cls: Any) -> None:
    own = config.machines[column].kernel
    for kernel in config.kernels_of(column):
        if kernel not in cls.kernels:
            hint = did_you_mean(kernel, cls.kernels)
            keys = ("machines", column, "kernel") if own else ("kernel",)
            raise Fault(f"{config.machine_of(column)} has no kernel {kernel!r}{hint}", *keys)


def _check_relevant(parameter: str, kernels: Iterable[str]) -> None:
    """Refuse a width without an rbf kernel: the user believes that it does something."""
    needs = KERNEL_PARAMETERS.get(parameter)
    if needs and needs not in kernels:
        raise ValueError(f"has no effect: the kernel is {' and '.join(kernels)}, not {needs}")


def _check_not_fixed(alias: Alias, name: str, parameter: str, cls: Any) -> None:
    """Refuse another value of what an alias is named for: its column in a table would lie."""
    # B is B_fraction in other words
    means = cls.search_space.auto_grids.get(parameter, (parameter,))[0]
    if means in alias.params:
        given = f"{means} is {alias.params[means]!r} in {name} by definition"
        raise ValueError(f"{given}; {alias.machine} takes other values")


def _class_of(config: Config, column: str) -> Any:
    """Return the estimator class of a column."""
    return machine_class(config.machine_of(column))


def _check_stated_once(name: str, entry: MachineEntry, cls: Any) -> None:
    """Refuse a parameter that is both fixed and searched, or stated in two ways."""
    stated = dict.fromkeys(entry.grid, "grid")
    for parameter in entry.params:
        if parameter in stated:
            raise Fault("is also in the machine's grid", "machines", name, "params", parameter)
        stated[parameter] = "params"
    for parameter, other in replaced_by(cls, stated).items():
        if parameter in stated:
            keys = ("machines", name, stated[other], other)
            raise Fault(f"and {parameter} exclude each other", *keys)


def _check_use(config: Config) -> None:
    before: list[str] = []
    for name, entry in config.machines.items():
        if entry.use is not None:
            _check_parent(config, name, entry.use, before)
        before.append(name)


def _check_parent(config: Config, name: str, parent: str, before: list[str]) -> None:
    keys = ("machines", name, "use")
    if parent not in config.machines:
        known = did_you_mean(parent, before) if before else ""
        raise Fault(f"{parent!r} is not among the machines of this experiment{known}", *keys)
    chain = _use_chain(config, name)
    if chain[-1] in chain[:-1]:
        raise Fault(f"a circle: {' -> '.join(chain)}", *keys)
    if parent not in before:
        raise Fault(f"{parent!r} must be listed before {name!r}", *keys)
    lacking = set(config.kernels_of(name)) - set(config.kernels_of(parent))
    if lacking:
        raise Fault(f"{parent} does not run with kernel {sorted(lacking)[0]}", *keys)


def _use_chain(config: Config, name: str) -> list[str]:
    """Return a machine, the one it uses, and so on, up to the first repetition."""
    chain = [name]
    while chain[-1] in config.machines and chain[-1] not in chain[:-1]:
        parent = config.machines[chain[-1]].use
        if parent is None:
            break
        chain.append(parent)
    return chain


# -- keys that speak for all machines ----------------------------------------------------------


def _check_shared_kernel_keys(config: Config) -> None:
    kernels = {k for name in config.machines for k in config.kernels_of(name)}
    degrees = config.degree or []
    if len(set(degrees)) < len(degrees):
        raise Fault(f"holds a degree twice: {degrees}", "degree")
    if config.gamma_scaling != "none":
        with at("gamma_scaling"):
            _check_relevant("gamma_scaling", sorted(kernels))
    if config.kernel_scaling != "none":
        with at("kernel_scaling"):
            _check_relevant("kernel_scaling", sorted(kernels))
            _check_has("kernel_scaling", config)
    if config.degree is not None:
        with at("degree"):
            _check_relevant("degree", sorted(kernels))
        for name, entry in config.machines.items():
            for part in ("params", "grid"):
                if "degree" in getattr(entry, part):
                    message = "is also a key of the experiment"
                    raise Fault(message, "machines", name, part, "degree")


def _check_has(parameter: str, config: Config) -> None:
    """Refuse what some machine would silently go without."""
    for name in config.machines:
        if parameter not in _class_of(config, name).parameters:
            raise ValueError(f"{name} does not have it")


def _check_prefer(config: Config) -> None:
    declared = {p: d for m in config.machines for p, d in _class_of(config, m).parameters.items()}
    known = {p for p, d in declared.items() if d.numeric and p not in EXPERIMENT_KEYS}
    for parameter in config.select.prefer:
        if parameter not in known:
            message = f"no machine here has this parameter{did_you_mean(parameter, known)}"
            raise Fault(message, "select", "prefer", parameter)


def _check_scope(config: Config) -> None:
    from mmbench.machines.joint_training import JointClassifier

    for name in config.machines if config.select.scope == "pair" else ():
        if issubclass(_class_of(config, name), JointClassifier):
            message = f"{name} trains all pairs of classes together, with the parameters of all"
            raise Fault(f"{message}; use scope global", "select", "scope")


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
            raise Fault("its parameters come from parameters_from", "machines", name, own)
        lacking = name not in source.machines or not (
            set(config.kernels_of(name)) <= set(source.kernels_of(name))
        )
        if lacking:
            raise Fault(f"{source.name} does not run {name} with these kernels", *keys)
    if not set(config.degree or ()) <= set(source.degree or ()):
        raise Fault(f"{source.name} does not have all degrees", *keys)
    if (config.protocol.repeats or 1) > (source.protocol.repeats or 1):
        raise Fault(f"{source.name} has fewer repeats", *keys)
    if len(source.protocol.subsets) > 1:
        raise Fault(f"{source.name} has several training sizes", *keys)
    classes = {entry.label: entry.classes for entry in source.datasets}
    for entry in config.datasets:
        if entry.classes != classes[entry.label]:
            raise Fault(f"{source.name} has other classes of {entry.label!r}", *keys)


def _check_validation(config: Config) -> None:
    if config.select.validation == "rest" and config.protocol.max_train is None:
        raise Fault("needs protocol.max_train, which leaves rows", "select", "validation")


def _check_published(config: Config) -> None:
    from mmbench.tables import published_machines

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
    from mmbench.tables import load_published, published_tables

    for k, entry in enumerate(config.datasets):
        if entry.published_as is not None:
            known = {d for table in published_tables() for d in load_published(table)["dataset"]}
            if entry.published_as not in known:
                hint = did_you_mean(entry.published_as, known)
                message = f"no published table has data set {entry.published_as!r}{hint}"
                raise Fault(message, "datasets", k, "published_as")


def _check_layout(config: Config) -> None:
    from mmbench.tables import check_sized, layout_names

    known = layout_names()
    if config.layout not in known:
        hint = did_you_mean(config.layout, known)
        raise Fault(f"unknown layout {config.layout!r}{hint}", "layout")
    if len(config.protocol.subsets) > 1:
        with at("layout"):
            check_sized(config.layout)


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
    if entry.path is None:
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
    if entry.path is None:
        expect = load_card(entry.label).expect
        if len(expect.classes) == expect.n_classes:
            with at(*keys):
                check_classes(entry.classes, expect.classes)


def _check_override(config: Config, parameter: str, axis: Axis, *keys: Any) -> None:
    owners = [name for name, entry in config.machines.items() if parameter in entry.grid]
    if not owners:
        known = {p for entry in config.machines.values() for p in entry.grid}
        message = f"no machine here has a grid of {parameter!r}{did_you_mean(parameter, known)}"
        raise Fault(message, *keys)
    for name in owners:
        with at(*keys):
            check_axis(_class_of(config, name), config.machine_of(name), parameter, axis)
