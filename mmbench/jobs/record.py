"""The record of a job: a plain mapping of JSON types, sealed by a hash of its own content.

Keys: schema, key, job, status, reason, traceback, metrics, selection, cpu_seconds, wall_seconds,
seeds, split, fits, per_pair, deviations, warnings, environment, started, finished, arrays, seal. A
record with ``metrics`` is done; one without says in ``reason`` why there are none (and in
``wrong_input`` whether the user can mend it), and its job is run again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mmbench.errors import Status
from mmbench.jobs.job import Job

#: Raised when a reader of older records would misunderstand newer ones.
RECORD_SCHEMA = 1

Record = dict[str, Any]


class BadRecord(Exception):
    """A file that is no intact record of the job whose name it bears."""


def new_record(job: Job, status: Status, reason: str = "", **content: Any) -> Record:
    """Return the record of a job, in JSON types.

    Parameters
    ----------
    job : Job
    status : Status
        The worst status of its binary problems, or why there is no result.
    reason : str
        One line, where there is no result.
    **content
        The other keys.
    """
    empty = {
        "wrong_input": False,
        "traceback": "",
        "metrics": {},
        "selection": {},
        "cpu_seconds": {},
        "wall_seconds": {},
        "seeds": {},
        "split": {},
        "fits": {},
        "per_pair": [],
        "deviations": [],
        "warnings": [],
        "environment": {},
        "started": timestamp(),
        "finished": timestamp(),
    }
    head = {"schema": RECORD_SCHEMA, "key": job.key, "job": job.to_dict()}
    return plain({**head, "status": status, "reason": reason, **empty, **content})


def is_done(record: Mapping[str, Any]) -> bool:
    """Return whether a job has its result; if not, it is run again."""
    return bool(record["metrics"])


def timestamp() -> str:
    """Return the time of day, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def dump(record: Mapping[str, Any]) -> bytes:
    """Return the JSON text of a record, sealed."""
    return json.dumps({**record, "seal": _seal(record)}, indent=1, allow_nan=False).encode()


def parse(text: bytes, key: str) -> Record:
    """Return the record in a JSON text.

    Raises
    ------
    BadRecord
        If the text is damaged, was changed by hand, or is another job's or version's record.
    """
    try:
        record = json.loads(text)
    except ValueError as error:
        raise BadRecord("not complete JSON") from error
    if not isinstance(record, dict) or record.pop("seal", None) != _seal(record):
        raise BadRecord("its content does not match its seal")
    if record.get("schema") != RECORD_SCHEMA:
        raise BadRecord(f"schema {record.get('schema')}, not {RECORD_SCHEMA}")
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


def _seal(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
