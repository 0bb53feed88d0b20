"""The plan of an experiment: its table cells and the keys of their jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from typing import Annotated, Any, NamedTuple, Required, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from mmbench.datasets.card import first_fault
from mmbench.jobs.job import Job
from mmbench.jobs.seal import BadRecord, sealed, unseal
from mmbench.machines import alias_of

#: Version of the plan format. PLAN_SCHEMA is increased if older code would misread newer plans.
PLAN_SCHEMA = 1

#: Integer in a plan, from 0 to the largest integer that pandas can store.
Count = Annotated[int, Field(ge=0, lt=2**63)]


class Key(NamedTuple):
    """The identity of a table cell; `size` is None if the experiment has only one training size."""

    dataset: str
    kernel: str
    degree: Count | None
    machine: str
    size: Count | None = None


def key_of(job: Job) -> Key:
    """Return the key of the table cell to which the result of a job contributes."""
    return Key(job.dataset.name, job.kernel, job.degree, job.column, job.split.size)


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return a dict from each key to the list of its values, in the order of `pairs`."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


class PublishedRow(TypedDict, total=False):
    """A row of a user's published table, without its empty cells. The columns are the columns of
    the published tables in the package; see `mmbench.results.published`.
    """

    dataset: Required[str]
    machine: str
    metric: Required[str]
    kernel: str
    degree: int
    value: float
    std: float
    std_is: str
    n_train: int
    n_test: int
    n_splits: int
    printed_dataset: str
    printed_method: str
    reason: str


@dataclass(frozen=True)
class PlannedCell:
    """A table cell (data set, kernel, degree, machine, training size) with the keys of its jobs."""

    key: Key
    #: Number of records of the table cell after a complete run.
    n_splits: Count
    #: Keys of the table cell's jobs; empty if the plan was made without reading the data.
    jobs: tuple[str, ...] = ()
    #: Whether the table cell shows only a published value, so that the machine is not run.
    published_only: bool = False


@dataclass(frozen=True)
class Plan:
    """The plan of an experiment: the table cells and jobs, and settings of the tables."""

    name: str
    #: Name of the table layout.
    layout: str = "generic"
    #: Table cells, in the order of the tables.
    cells: tuple[PlannedCell, ...] = ()
    #: Headings of machines in tables, by the name of the entry of ``machines`` in the
    #: configuration. The heading of any other entry is the label of the machine.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Names of data sets in published tables, by the name in mmbench, if the names differ. An empty
    #: name means that results are not compared; it is the default if only some classes are used.
    published_as: Mapping[str, str] = field(default_factory=dict)
    #: Number of splits behind each published mean, by data set, if it differs from the number in
    #: the published table.
    published_splits: Mapping[str, Count] = field(default_factory=dict)
    #: Whether the experiment is a quick (smoke) version; its results are not compared with
    #: published values.
    smoke: bool = False
    #: Metrics in the tables; if empty, the metrics are determined by the layout of the tables.
    metrics: tuple[str, ...] = ()
    #: For each entry of ``machines`` with inherited parameters, the entry with the parameters.
    uses: Mapping[str, str] = field(default_factory=dict)
    #: Ratio of test rows to training rows before `max_train`. Without `max_train`, and for split
    #: rules other than holdout and kfold, it is 0, and tables compute it from the records.
    test_to_train: float = 0.0
    #: Rows of the user's published table, if there is one.
    published: tuple[PublishedRow, ...] = ()
    #: Names of the layouts of further tables of the experiment.
    more_layouts: tuple[str, ...] = ()
    #: SHA-256 and text of the configuration in the results folder; empty if unknown.
    config_sha256: str = ""
    config: str = ""

    @cached_property
    def jobs(self) -> frozenset[str]:
        """Keys of all jobs."""
        return frozenset(key for cell in self.cells for key in cell.jobs)

    def label(self, machine: str) -> str:
        """Return the heading of a machine's column in tables."""
        return self.labels.get(machine) or alias_of(machine).label

    def filled(self, jobs: Iterable[Job]) -> Plan:
        """Return a plan with `jobs` in place of the planned jobs.

        Table cells are added for jobs that belong to no planned cell. The number of splits of an
        added cell is the number of splits of its data set in `jobs`.
        """
        jobs = sorted(jobs, key=lambda job: job.split.at)
        groups = grouped((key_of(job), job) for job in jobs)
        splits = Counter(name for name, _ in {(job.dataset.name, job.split.at) for job in jobs})
        known = {cell.key for cell in self.cells}
        more = (PlannedCell(key, splits[key.dataset]) for key in groups if key not in known)
        cells = []
        for cell in (*self.cells, *more):
            own = tuple(job.key for job in groups.get(cell.key, ()))
            cells.append(replace(cell, jobs=own, n_splits=max(cell.n_splits, len(own))))
        return replace(self, cells=tuple(cells))

    def dump(self) -> bytes:
        """Return the plan as JSON text that is sealed by a hash of its content."""
        return sealed({"schema": PLAN_SCHEMA, **asdict(self)})

    @classmethod
    def parse(cls, text: bytes) -> Plan:
        """Return the plan in a JSON text that is sealed by a hash of its content.

        Raises
        ------
        BadRecord
            If the text is damaged, or if an entry has a wrong type; the message names the entry.
        """
        return cls.of(unseal(text, PLAN_SCHEMA))

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Plan:
        """Return the plan with the given content in JSON types.

        Raises
        ------
        BadRecord
            If an entry has a wrong type; the message names the entry.
        """
        try:
            return _validator().validate_python(content)
        except ValidationError as error:
            raise BadRecord(first_fault(error)) from None


@cache
def _validator() -> TypeAdapter[Plan]:
    """Return the validator of plans, which takes longer to make than most plans to validate."""
    return TypeAdapter(Plan)
