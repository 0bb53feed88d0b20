"""The record of a job: what came of it, as sealed JSON on disk and as a `Record` once read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from mmbench.errors import Status
from mmbench.jobs import seal
from mmbench.jobs.job import Job
from mmbench.jobs.seal import BadRecord

#: Raised when a reader of older records would misunderstand newer ones.
RECORD_SCHEMA = 1

#: A record as JSON types: the attributes of `Record`, its job as a mapping, ``schema`` and ``key``.
Content = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """What came of a job."""

    #: The key of its job, by which it is named.
    key: str
    job: Job
    #: The worst status of the binary problems, or why there is no result.
    status: str
    #: Where there is no result, why; where there is one, which of its fits are not optimal.
    reason: str = ""
    #: Whether the user can mend that there is no result.
    wrong_input: bool = False
    traceback: str = ""
    #: On the test rows; empty without a result.
    metrics: Mapping[str, Any] = field(default_factory=dict)
    #: Selected parameters and the scores of the grid.
    selection: Mapping[str, Any] = field(default_factory=dict)
    #: By stage.
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    wall_seconds: Mapping[str, float] = field(default_factory=dict)
    #: Of the random choices.
    seeds: Mapping[str, int] = field(default_factory=dict)
    #: Sizes and hash of the training and the test part.
    split: Mapping[str, Any] = field(default_factory=dict)
    #: Summary of the certificates.
    fits: Mapping[str, Any] = field(default_factory=dict)
    #: The certificate of each pair of classes.
    per_pair: list[Mapping[str, Any]] = field(default_factory=list)
    #: Where the data differ from the full data set.
    deviations: list[str] = field(default_factory=list)
    #: What is suspicious in a user's file.
    warnings: list[str] = field(default_factory=list)
    #: Versions, computer and threads.
    environment: Mapping[str, Any] = field(default_factory=dict)
    #: The limits of the job: "time" in seconds, "memory" in bytes.
    limits: Mapping[str, float | None] = field(default_factory=dict)
    #: Where a limit stopped it, the "stage", the "seconds" and the "bytes". A job that stopped when
    #: it was asked to tells of a selection the "trainings" done and "planned", and of a training
    #: the "pairs", those "pairs_begun" and "pairs_solved", and of the worst "pair" that was begun
    #: "iterations", "objective", "bound", "gap" and "violation".
    reached: Mapping[str, Any] = field(default_factory=dict)
    #: In UTC.
    started: str = ""
    finished: str = ""
    #: Hash of the file of arrays beside the record.
    arrays: str | None = None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Record:
        """Return the record that some JSON types state.

        Raises
        ------
        BadRecord
            If they state no job.
        """
        names = {f.name for f in fields(cls)}
        if None in content.get("metrics", {}).values():  # NaN, as JSON has it
            why = {"status": Status.FAILED, "reason": "a metric is not a number", "metrics": {}}
            content = {**content, **why}
        known = {name: value for name, value in content.items() if name in names}
        try:
            return cls(**{**known, "job": Job.from_dict(content["job"])})
        except (KeyError, TypeError, ValueError) as error:
            raise BadRecord(f"states no job ({error})") from None

    @property
    def done(self) -> bool:
        """Whether the job has its result; if not, it is run again."""
        return bool(self.metrics)

    @property
    def at(self) -> tuple[int, int, int]:
        """The split, as (repeat, fold, seed)."""
        return self.job.split.at


def new_record(job: Job, status: Status, reason: str = "", **content: Any) -> Content:
    """Return the record of a job, in JSON types.

    Parameters
    ----------
    job : Job
    status : Status
        The worst status of its binary problems, or why there is no result.
    reason : str
        One line, where there is no result or a doubtful one.
    **content
        The other attributes of a `Record`.
    """
    now = timestamp()
    record = Record(job.key, job, status, reason, **{"started": now, "finished": now, **content})
    return plain({"schema": RECORD_SCHEMA, **vars(record), "job": job.to_dict()})


def is_done(record: Mapping[str, Any]) -> bool:
    """Return whether a job has its result; if not, it is run again."""
    return bool(record["metrics"]) and None not in record["metrics"].values()


def timestamp() -> str:
    """Return the time of day, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def parse(text: bytes, key: str) -> Content:
    """Return the record in a JSON text.

    Raises
    ------
    BadRecord
        If the text is damaged, was changed by hand, or is another job's or version's record.
    """
    record = seal.parse(text, RECORD_SCHEMA)
    if record.get("key") != key:
        raise BadRecord(f"holds the record {record.get('key')}")
    return record


def plain(value: Any) -> Any:
    """Return JSON types; what is not a finite number becomes None.

    Examples
    --------
    >>> plain({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else str(value)
