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
    """What came of a job.

    Attributes
    ----------
    key : str
        The key of its job, by which it is named.
    job : Job
    status : str
        The worst status of the binary problems, or why there is no result.
    reason, traceback : str
        Where there is no result, why; `wrong_input` says whether the user can mend it. Where there
        is one, which of its fits are not optimal.
    metrics : mapping
        On the test rows; empty without a result.
    selection : mapping
        Selected parameters and the scores of the grid.
    cpu_seconds, wall_seconds : mapping of str to float
        By stage.
    seeds, split : mapping
        Of the random choices; sizes and hash of the training and the test part.
    fits : mapping
        Summary of the certificates.
    per_pair : list of mapping
        The certificate of each pair of classes.
    deviations, warnings : list of str
        Where the data differ from the full data set; what is suspicious in a user's file.
    environment : mapping
        Versions, computer and threads.
    limits, reached : mapping
        The limits of the job ("time" in seconds, "memory" in bytes), and where one of them stopped
        it the "stage", the "seconds" and the "bytes". A job that stopped when it was asked to tells
        of a selection the "trainings" done and "planned", and of a training the "pairs", those
        "pairs_begun" and "pairs_solved", and of the worst "pair" that was begun "iterations",
        "objective", "bound", "gap" and "violation".
    started, finished : str
        In UTC.
    arrays : str or None
        Hash of the file of arrays beside the record.
    """

    key: str
    job: Job
    status: str
    reason: str = ""
    wrong_input: bool = False
    traceback: str = ""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    selection: Mapping[str, Any] = field(default_factory=dict)
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    wall_seconds: Mapping[str, float] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)
    split: Mapping[str, Any] = field(default_factory=dict)
    fits: Mapping[str, Any] = field(default_factory=dict)
    per_pair: list[Mapping[str, Any]] = field(default_factory=list)
    deviations: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    environment: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, float | None] = field(default_factory=dict)
    reached: Mapping[str, Any] = field(default_factory=dict)
    started: str = ""
    finished: str = ""
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
