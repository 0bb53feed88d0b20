"""The record of a job: sealed JSON on disk, and a `Record` once it is read.

A seal is a hash of the content, so that a damaged or changed file is found. A seal that was made
again does not make a record: its parts are checked against a schema. Here are also the clock of
the stages of a job and the selected parameters that jobs pass on to each other.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from statistics import median_low
from typing import Any

from mmbench.errors import Status
from mmbench.jobs.job import Job


class BadRecord(Exception):
    """A file that is not the intact one that its name promises."""


def sealed(content: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return the JSON text of a mapping, sealed."""
    sealed = {**content, "seal": _seal(content)}
    return json.dumps(sealed, indent=indent, allow_nan=False).encode()


def unseal(text: bytes, schema: int) -> dict[str, Any]:
    """Return the mapping in a sealed JSON text.

    Parameters
    ----------
    text : bytes
    schema : int
        The value of the mapping's ``schema`` that the caller understands.

    Raises
    ------
    BadRecord
        If the text is damaged, was changed by hand, or is of another schema.
    """
    try:
        content = json.loads(text)
        intact = isinstance(content, dict) and content.pop("seal", None) == _seal(content)
    except ValueError as error:
        raise BadRecord("not complete JSON") from error
    except RecursionError:
        raise BadRecord("nested too deeply") from None
    if not intact:
        raise BadRecord("its content does not match its seal")
    if content.get("schema") != schema:
        raise BadRecord(f"schema {content.get('schema')}, not {schema}")
    return content


def _seal(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Clock:
    """Adds up the time of named stages.

    Parameters
    ----------
    *stages : str
        Those that count from the start, with no time; others join when they begin.
    tell : callable, optional
        Gets the name of each stage when it begins.

    Attributes
    ----------
    cpu : dict of str to float
        Seconds of all threads of this process.
    wall : dict of str to float
    now : str or None
        The stage that began last.

    Examples
    --------
    >>> clock = Clock("training")
    >>> with clock.stage("training"):
    ...     total = sum(range(1000))
    >>> 0 <= clock.wall["training"] < 1
    True
    """

    def __init__(self, *stages: str, tell: Callable[[str], object] | None = None):
        self._tell = tell
        self.now: str | None = None
        self.cpu = dict.fromkeys(stages, 0.0)
        self.wall = dict.fromkeys(stages, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside the block, also when it ends by an exception."""
        self.now = name
        if self._tell:
            self._tell(name)
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            self.cpu[name] = self.cpu.get(name, 0.0) + time.process_time() - cpu
            self.wall[name] = self.wall.get(name, 0.0) + time.perf_counter() - wall


#: One choice for all pairs of classes, or one a pair.
Choice = dict[str, Any] | list[dict[str, Any]]


def merged(old: Choice, new: Choice) -> Choice:
    """Return both choices in one; a machine passes on what it inherited."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **new}
    n_pairs = len(old if isinstance(old, list) else new)
    olds = old if isinstance(old, list) else [old] * n_pairs
    news = new if isinstance(new, list) else [new] * n_pairs
    return [{**before, **after} for before, after in zip(olds, news, strict=True)]


def middle(choices: Sequence[Choice]) -> Choice:
    """Return one choice for several splits: each parameter's median, and pair by pair.

    Of an even number it is the lower of the two in the middle, so that it is a value that was
    chosen. Of values that are no numbers it is the most frequent, of these the first.

    Raises
    ------
    ValueError
        If the choices are of different numbers of pairs.
    """
    whole = [choice for choice in choices if isinstance(choice, dict)]
    if whole:
        return _middle(whole)
    of_pairs = [choice for choice in choices if isinstance(choice, list)]
    if len(counts := {len(pairs) for pairs in of_pairs}) > 1:
        raise ValueError(
            f"the splits have choices for {min(counts)} to {max(counts)} pairs of classes: where "
            "one lacks a class there is no median for each pair"
        )
    return [_middle(pair) for pair in zip(*of_pairs, strict=True)]


def _middle(choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {name: _median([choice[name] for choice in choices]) for name in choices[0]}


def _median(values: Sequence[Any]) -> Any:
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return median_low(values)
    return max(values, key=list(values).count)


#: Raised when a reader of older records would misunderstand newer ones.
RECORD_SCHEMA = 1

#: Entries without which a record with a result is not complete.
NEEDED = {"metrics": "accuracy_pct", "fits": "statuses"}

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
    #: All parameters of the fitted estimator; selected ones are in `selection` too.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: "version", "commit" and "fingerprint" of the code behind the machine.
    code: Mapping[str, Any] = field(default_factory=dict)
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
        for part, name in NEEDED.items():
            if content.get("metrics") and name not in content.get(part, {}):
                raise BadRecord(f"{part} without {name!r}")
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


Number = float | None
Scalar = str | float | bool | None
Values = dict[str, Scalar | list[Scalar]]


@cache
def _schema() -> Any:
    """Return the types of the parts of a record; entries that are not named here may be missing."""
    from pydantic import create_model

    def part(needed: Any = "", **types: Any) -> Any:
        defaults = {name: ... if name in needed.split() else None for name in types}
        fields: Any = {name: (kind, defaults[name]) for name, kind in types.items()}
        return create_model("Part", **fields)

    counts, seconds, texts = dict[str, int], dict[str, float], list[str]
    figures = dict.fromkeys(("objective", "bound", "max_violation", "gap", "seconds"), Number)
    whole = dict.fromkeys(("iterations", "n_support"), int)
    pair = part(
        "status pair",
        status=Status,
        pair=tuple[Scalar, Scalar],
        route=str,
        extra=dict[str, Any],
        **figures,
        **whole,
    )
    sizes = dict.fromkeys(("n_train", "n_train_pair", "n_test", "n_features"), int)
    worst = dict.fromkeys(("worst_violation", "worst_gap", "gap_tolerance"), Number)
    return part(
        "key job status metrics cpu_seconds wall_seconds",
        **dict.fromkeys(("key", "reason", "traceback", "started", "finished"), str),
        job=Job,
        status=Status,
        wrong_input=bool,
        metrics=dict[str, Number],
        selection=part(params=Values | list[Values], scores=list[Values], n_points=int),
        cpu_seconds=seconds,
        wall_seconds=seconds,
        seeds=counts,
        split=part(digest=str, origin=str, **sizes),
        fits=part(n=int, statuses=dict[Status, int], routes=counts, n_support_mean=Number, **worst),
        per_pair=list[pair],  # type: ignore[valid-type]
        deviations=texts,
        warnings=texts,
        parameters=dict[str, Any],
        code=dict[str, str | int | None],
        environment=part(
            **dict.fromkeys(("mmbench", "python", "platform", "cpu"), str),
            cores=int | None,
            libraries=dict[str, str],
            threads=part(pairs=int, libraries=counts),
        ),
        limits=dict[str, Number],
        reached=Values,
        arrays=str | None,
    )


def check(content: Content) -> None:
    """Raise BadRecord, naming the place, if a part of a record is not of its type."""
    from pydantic import ValidationError

    try:
        _schema().model_validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise BadRecord(f"{place}: {first['msg']}") from None


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
        If the text is damaged, was changed by hand, or is the record of another job or version.
    """
    record = unseal(text, RECORD_SCHEMA)
    if record.get("key") != key:
        raise BadRecord(f"holds the record {record.get('key')}")
    check(record)
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
