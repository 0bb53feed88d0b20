"""What a configuration must agree on with machines, data sets and layouts, before data are read."""

from typing import Any

from mmbench.config.check_machines import check_machines, check_relevant, columns
from mmbench.config.faults import Fault, at
from mmbench.config.grids import Axis
from mmbench.config.model import Config, DatasetEntry
from mmbench.datasets import card_names, check_classes, check_steps, load_card, split_slots
from mmbench.datasets.dataset import Steps
from mmbench.errors import did_you_mean
from mmbench.machines import ALIASES, MACHINES
from mmbench.tables.layouts import LAYOUTS, check_any_metric, check_sized
from mmbench.tables.published import published_machines, published_rows, published_tables


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
