"""Records of one cell (data set, kernel, degree, machine, size), and what they say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mmbench.errors import Status, worst
from mmbench.jobs.job import Job
from mmbench.jobs.record import is_done

#: Cells that have no status of the vocabulary, because nothing was run for them.
MISSING = "missing"
PUBLISHED_ONLY = "published_only"


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


@dataclass
class Cell:
    """The records of one cell.

    Attributes
    ----------
    key : Key
    records : list of mapping
        One a split, failed jobs included.
    n_expected : int
        How many splits the experiment has for this data set.
    published_only : bool
        Whether the experiment shows this machine's published value without running it.
    remarks : list of str
        What the reader must know besides.
    """

    key: Key
    records: list[Mapping[str, Any]] = field(default_factory=list)
    n_expected: int = 1
    published_only: bool = False
    remarks: list[str] = field(default_factory=list)

    @property
    def done(self) -> list[Mapping[str, Any]]:
        """Records that hold results."""
        return [record for record in self.records if is_done(record)]

    @property
    def failed(self) -> list[Mapping[str, Any]]:
        """Records of failed jobs."""
        return [record for record in self.records if not is_done(record)]

    @property
    def same_test_rows(self) -> bool:
        """Whether every record was tested on the official test part."""
        return all(record["job"]["split"]["rule"] == "official" for record in self.records)

    @property
    def fit_statuses(self) -> Counter[str]:
        """How many binary trainings ended how, over all splits."""
        total: Counter[str] = Counter()
        for record in self.done:
            total.update(record["fits"]["statuses"])
        return total

    @property
    def status(self) -> str:
        """The worst that happened in this cell."""
        if self.published_only:
            return PUBLISHED_ONLY
        if self.failed:
            return worst(record["status"] for record in self.failed)
        if len(self.records) < self.n_expected:
            return MISSING
        return worst(self.fit_statuses)

    @property
    def note(self) -> str:
        """What is not as it should be, in words; empty when all is well."""
        if self.published_only:
            return ""
        parts = [self._incomplete(), self._fits(), *self.remarks]
        return "; ".join(part for part in parts if part)

    def _incomplete(self) -> str:
        if len(self.done) == self.n_expected:
            return ""
        if not self.records:
            return "not run"
        causes = Counter(record.get("reason") or record["status"] for record in self.failed)
        parts = [f"{count} failed ({reason})" for reason, count in causes.items()]
        if absent := self.n_expected - len(self.records):
            parts.append(f"{absent} not run")
        if self.n_expected == 1:
            return f"failed ({next(iter(causes))})"
        return f"{len(self.done)} of {self.n_expected} splits done, {', '.join(parts)}"

    def _fits(self) -> str:
        statuses = self.fit_statuses
        total = statuses.total()
        parts = [
            f"{statuses[s]} {s.replace('_', ' ')}"
            for s in sorted(statuses)
            if s != Status.OPTIMAL and statuses[s]
        ]
        return f"of {total} fits {', '.join(parts)}" if parts else ""
