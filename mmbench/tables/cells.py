"""Records of one cell (data set, kernel, degree, machine, size), and what they say together."""

from collections import Counter
from dataclasses import dataclass

from mmbench.errors import FINISHED, Status, worst
from mmbench.jobs.record import Record
from mmbench.jobs.store import Key, PlannedCell

#: Cells that have no status of the vocabulary, because nothing was run for them.
MISSING = "missing"
PUBLISHED_ONLY = "published_only"

#: What is said of a classifier that solves no problem of this package.
NO_CERTIFICATES = "its fits have no certificate"


@dataclass(frozen=True)
class Cell:
    """The records of one cell."""

    planned: PlannedCell
    #: One a split, failed jobs included.
    records: list[Record]
    #: Whether splits with a failed fit count like the others.
    include_failed: bool = False

    @property
    def key(self) -> Key:
        """Where it stands."""
        return self.planned.key

    @property
    def done(self) -> list[Record]:
        """Records that hold results."""
        return [record for record in self.records if record.done]

    @property
    def counted(self) -> list[Record]:
        """Records whose results go into means: a failed fit's classifier is not its machine's."""
        failed = self._with_failed_fits
        return [record for record in self.done if self.include_failed or record not in failed]

    @property
    def _with_failed_fits(self) -> list[Record]:
        return [record for record in self.done if record.fits["statuses"].get(Status.FAILED)]

    @property
    def failed(self) -> list[Record]:
        """Records of failed jobs."""
        return [record for record in self.records if not record.done]

    @property
    def same_test_rows(self) -> bool:
        """Whether every record was tested on the official test part."""
        return all(record.job.split.rule == "official" for record in self.records)

    @property
    def fit_statuses(self) -> Counter[str]:
        """How many binary trainings ended how, over all splits."""
        total: Counter[str] = Counter()
        for record in self.done:
            total.update(record.fits["statuses"])
        return total

    @property
    def status(self) -> str:
        """The worst that happened in this cell."""
        if self.planned.published_only:
            return PUBLISHED_ONLY
        if self.failed:
            return worst(record.status for record in self.failed)
        if len(self.records) < self.planned.n_splits:
            return MISSING
        return worst(self.fit_statuses)

    @property
    def note(self) -> str:
        """What is not as it should be, in words; empty when all is well."""
        if self.planned.published_only:
            return ""
        return "; ".join(filter(None, [self._incomplete(), self._fits()]))

    def _incomplete(self) -> str:
        if len(self.done) == self.planned.n_splits:
            return ""
        if not self.records:
            return "not run"
        causes = Counter(record.reason or record.status for record in self.failed)
        parts = [f"{count} failed ({reason})" for reason, count in causes.items()]
        if absent := self.planned.n_splits - len(self.records):
            parts.append(f"{absent} not run")
        if self.planned.n_splits == 1:
            return f"failed ({next(iter(causes))})"
        return f"{len(self.done)} of {self.planned.n_splits} splits done, {', '.join(parts)}"

    def _fits(self) -> str:
        statuses = self.fit_statuses
        if set(statuses) == {Status.UNCERTIFIED}:
            return NO_CERTIFICATES
        parts = [
            f"{statuses[s]} {s.replace('_', ' ')}"
            for s in sorted(statuses)
            if s not in FINISHED and statuses[s]
        ]
        if splits := len(self._with_failed_fits):
            how = "counted all the same" if self.include_failed else "not counted"
            parts.append(f"{splits} of {len(self.done)} splits {how}")
        return f"of {statuses.total()} fits {', '.join(parts)}" if parts else ""
