"""What an experiment has planned, stored beside its records, so that tables need no configuration.

A run writes ``plan.json``: the cells of its tables in order, each with the keys of its jobs. A
record whose key is not there belongs to other settings or to an earlier version of a machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from mmbench.jobs import seal
from mmbench.jobs.job import Job
from mmbench.machines import alias_of

#: Raised when a reader of older plans would misunderstand newer ones.
PLAN_SCHEMA = 1


class Key(NamedTuple):
    """Where a cell stands in a table; a training size only where there are several."""

    dataset: str
    kernel: str
    degree: int | None
    machine: str
    size: int | None = None


def key_of(job: Job) -> Key:
    """Return the cell that a job's record belongs to."""
    return Key(job.dataset.name, job.kernel, job.degree, job.column, job.split.size)


@dataclass(frozen=True)
class PlannedCell:
    """A cell of an experiment's tables."""

    key: Key
    #: How many records it will have.
    n_splits: int
    #: The keys of its jobs; empty in a plan that was made without the data.
    jobs: tuple[str, ...] = ()
    #: Whether it shows a published value without running the machine.
    published_only: bool = False


@dataclass(frozen=True)
class Plan:
    """What an experiment has planned."""

    name: str
    #: The layout of its tables.
    layout: str = "generic"
    #: In the order in which tables show them.
    cells: tuple[PlannedCell, ...] = ()
    #: How machines are called in tables, where not by their own name.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: The name in published tables of a data set that has another one here; empty for some classes
    #: of a data set, which are not compared with the whole.
    published_as: Mapping[str, str] = field(default_factory=dict)
    #: Whether it is the smoke version of an experiment, whose numbers are held against nothing.
    smoke: bool = False
    #: What its tables show of each classification; the layout decides where none are named.
    metrics: tuple[str, ...] = ()
    #: By column: the one whose selected parameters it takes over.
    uses: Mapping[str, str] = field(default_factory=dict)
    #: Of the configuration that is stored beside it; empty where that is not known.
    config_sha256: str = ""

    @property
    def jobs(self) -> frozenset[str]:
        """The keys of all jobs."""
        return frozenset(key for cell in self.cells for key in cell.jobs)

    def label(self, machine: str) -> str:
        """Return how tables call a machine."""
        return self.labels.get(machine) or alias_of(machine).label

    def filled(self, jobs: Iterable[Job]) -> Plan:
        """Return the plan with other jobs, and cells for those that it has none for.

        Such a cell is to have as many splits as its data set has anywhere.
        """
        groups = group_by_cell(sorted(jobs, key=lambda job: job.split.at))
        splits: dict[str, set[tuple[int, int, int]]] = {}
        for key, found in groups.items():
            at = {job.split.at for job in found}
            splits.setdefault(key.dataset, set()).update(at)
        known = {cell.key for cell in self.cells}
        more = (PlannedCell(k, len(splits[k.dataset])) for k in groups if k not in known)
        cells = []
        for cell in (*self.cells, *more):
            own = tuple(job.key for job in groups.get(cell.key, ()))
            cells.append(replace(cell, jobs=own, n_splits=max(cell.n_splits, len(own))))
        return replace(self, cells=tuple(cells))

    def dump(self) -> bytes:
        """Return the plan as sealed JSON."""
        return seal.dump({"schema": PLAN_SCHEMA, **asdict(self)})

    @classmethod
    def parse(cls, text: bytes) -> Plan:
        """Return the plan in a sealed JSON text.

        Raises
        ------
        BadRecord
            If the text is damaged.
        """
        content = seal.parse(text, PLAN_SCHEMA)
        del content["schema"]
        cells = tuple(map(_planned_cell, content.pop("cells")))
        return cls(**{**content, "cells": cells, "metrics": tuple(content.get("metrics", ()))})


def _planned_cell(content: Mapping[str, Any]) -> PlannedCell:
    return PlannedCell(**{**content, "key": Key(*content["key"]), "jobs": tuple(content["jobs"])})


def group_by_cell(jobs: Iterable[Job]) -> dict[Key, list[Job]]:
    """Return jobs by the cell that they belong to."""
    groups: dict[Key, list[Job]] = {}
    for job in jobs:
        groups.setdefault(key_of(job), []).append(job)
    return groups
