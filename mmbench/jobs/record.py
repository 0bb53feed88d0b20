"""The record of a job: a sealed JSON file whose types are checked, and a `Record` in memory."""

from __future__ import annotations

import marshal
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, NotRequired, cast, get_type_hints

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from mmbench.errors import Status
from mmbench.jobs.clock import timestamp
from mmbench.jobs.job import Job, field_names
from mmbench.jobs.seal import BadRecord, check_types, unseal

#: Version of the record format. RECORD_SCHEMA is increased if older code would misread newer
#: records.
RECORD_SCHEMA = 1

#: Required entries of "metrics", "fits" and "environment" in a record with a result.
NEEDED = {
    "metrics": {"accuracy_pct"},
    "fits": {"statuses"},
    "environment": {"mmbench", "python", "cpu", "threads"},
}

#: A record in JSON types: the attributes of `Record`, and the entry ``schema`` with the version of
#: the record format.
Content = dict[str, Any]


#: Types of the parts of a record. A type `float` alone would turn integers into floats.
Number = float | int | None
Scalar = str | float | int | bool | None
Values = dict[str, Scalar | list[Any] | dict[str, Any]]


@dataclass(frozen=True)
class Record:
    """The result of a job, or the reason for its failure."""

    #: Key of the job; also the file name of the record.
    key: str
    job: Job
    #: Most severe status of the binary problems, or status of a job without a result.
    status: Status
    #: Reason for a missing result, or summary of the solutions that are not optimal.
    reason: str = ""
    #: Whether the result is missing because of an error in the user's input.
    wrong_input: bool = False
    traceback: str = ""
    #: Metrics on the test rows; empty if the job has no result.
    metrics: Mapping[str, Any] = field(default_factory=dict)
    #: Selected parameters, and the scores of the grid points.
    selection: Mapping[str, Any] = field(default_factory=dict)
    #: CPU seconds and wall-clock seconds per stage.
    cpu_seconds: dict[str, float | int] = field(default_factory=dict)
    wall_seconds: dict[str, float | int] = field(default_factory=dict)
    #: Seeds of the random choices, by name.
    seeds: dict[str, int] = field(default_factory=dict)
    #: Numbers of training rows, test rows and features, and the hash of the split.
    split: Mapping[str, Any] = field(default_factory=dict)
    #: Summary of the optimality certificates (objective, bound, violation) of all pairs of classes.
    fits: Mapping[str, Any] = field(default_factory=dict)
    #: The optimality certificate of each pair of classes.
    per_pair: list[Mapping[str, Any]] = field(default_factory=list)
    #: Differences of the job's data from the full data set, such as a subset of the classes.
    deviations: list[str] = field(default_factory=list)
    #: Warnings about a user's data file and about calibration.
    warnings: list[str] = field(default_factory=list)
    #: All parameters of the fitted estimator, including the selected parameters.
    parameters: dict[str, Any] = field(default_factory=dict)
    #: "version", "commit" and "fingerprint" of the machine's code.
    code: dict[str, str | int | None] = field(default_factory=dict)
    #: Library versions, computer and numbers of threads.
    environment: Mapping[str, Any] = field(default_factory=dict)
    #: The limits of the job, with the entries "time" in seconds and "memory" in bytes.
    limits: dict[str, Number] = field(default_factory=dict)
    #: If a job reached a limit: "stage" (in which it ended), "seconds" (since its start) and
    #: "bytes" (used memory). In the selection also "trainings" (completed) and "planned". In the
    #: training also "pairs", "pairs_begun" and "pairs_solved", and "iterations", "objective",
    #: "bound", "gap" and "violation" of "pair", the unsolved pair with the largest gap.
    reached: Mapping[str, Any] = field(default_factory=dict)
    #: Start and end of the job, as ISO 8601 times in UTC.
    started: str = ""
    finished: str = ""
    #: SHA-256 of the record's file of arrays, or None if the record has no arrays.
    arrays: str | None = None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Record:
        """Create a record from its content in JSON types.

        Raises
        ------
        BadRecord
            If the mapping contains no valid job, or a result without a required entry.
        """
        if None in content.get("metrics", {}).values():  # NaN is stored as null
            why = {"status": Status.FAILED, "reason": "a metric is not a number", "metrics": {}}
            content = {**content, **why}
        for part, entries in NEEDED.items() if content.get("metrics") else ():
            held = content.get(part, {}).keys()
            if not held >= entries:
                raise BadRecord(f"{part} without {min(entries - held)!r}")
        known = {name: content[name] for name in field_names(cls) if name in content}
        try:
            return cls(**{**known, "job": Job.from_dict(content["job"])})
        except (KeyError, TypeError, ValueError) as error:
            raise BadRecord(f"states no job ({error})") from None

    @property
    def done(self) -> bool:
        """Whether the job has a result."""
        return bool(self.metrics)

    @property
    def at(self) -> tuple[int, int, int]:
        """Repeat, fold and seed of the split."""
        return self.job.split.at


@cache
def _schema() -> Any:
    """Return a validator that reads records; only the entries named in `needed` are required.

    The parts of a job that all splits share are checked by `_check_job`.
    """

    def part(types: Mapping[str, Any], needed: str = "") -> Any:
        entries = {n: k if n in needed.split() else NotRequired[k] for n, k in types.items()}
        made = cast(Any, TypedDict)("Part", entries)
        made.__pydantic_config__ = {"extra": "allow"}
        return made

    def each(names: str, kind: Any) -> dict[str, Any]:
        return dict.fromkeys(names.split(), kind)

    status: Any = Literal[tuple(map(str, Status))]
    at = part(each("repeat fold seed", int))
    job = part({"split": at, "parent": str | list[str] | None}, "split")
    fit = {"status": status, **each("objective bound max_violation", Number), "iterations": int}
    fit |= {"seconds": Number, "n_support": int}
    fit |= {"pair": Annotated[list[Scalar], Field(min_length=2, max_length=2)], "route": str}
    pair = part({**fit, "extra": dict[str, Any], "gap": Number}, "status pair")
    scores = {"scores": list[Values], "n_points": int}
    sizes = each("n_train n_train_pair n_test n_features", int)
    worst = each("worst_violation worst_gap gap_tolerance n_support_mean", Number)
    threads = part({"pairs": int, "libraries": dict[str, int]}, "pairs")
    computer = {"cores": int | None, "libraries": dict[str, str], "threads": threads}
    parts = {
        "job": job,
        "status": status,
        "metrics": dict[str, Number],
        "reached": Values,
        "selection": part({"params": Values | list[Values], **scores}),
        "split": part({**each("digest origin", str), **sizes}),
        "fits": part({"n": int, "statuses": dict[status, int], "routes": dict[str, int], **worst}),
        "per_pair": list[pair],  # type: ignore[valid-type]
        "environment": part({**each("mmbench python platform cpu", str), **computer}),
    }
    needed = "key job status metrics cpu_seconds wall_seconds"
    return TypeAdapter(part({**get_type_hints(Record), **parts}, needed)).validator


@lru_cache(maxsize=1000)
def _check_job(values: bytes) -> None:
    """Check the types in the part of a job that all splits share."""
    check_types({"job": marshal.loads(values)}, TypeAdapter(dict[str, Job]).validator)


def new_record(job: Job, status: Status, reason: str = "", **content: Any) -> Content:
    """Return the record of a job, in JSON types.

    Parameters
    ----------
    job : Job
    status : Status
        Most severe status of the binary problems, or status of a job without a result.
    reason : str
        One line of text: the reason for a missing result, or a summary of the solutions that are
        not optimal.
    **content
        Other attributes of a `Record`.
    """
    now = timestamp()
    record = Record(job.key, job, status, reason, **{"started": now, "finished": now, **content})
    return plain({"schema": RECORD_SCHEMA, **vars(record), "job": job.to_dict()})


def is_done(record: Mapping[str, Any]) -> bool:
    """Return whether a job has a result, that is, metrics without NaN (which is stored as None)."""
    return bool(record["metrics"]) and None not in record["metrics"].values()


def parse(text: bytes, key: str) -> Content:
    """Return the record in a JSON text that is sealed by a hash of its content.

    Raises
    ------
    BadRecord
        If the text is damaged or was edited, if it is the record of another job or format version,
        or if an entry has a wrong type. For a wrong type, the error message names the entry.
    """
    record = unseal(text, RECORD_SCHEMA, _schema())
    if record["key"] != key:
        raise BadRecord(f"holds the record {record['key']}")
    split = {**record["job"]["split"], "repeat": 0, "fold": 0, "seed": 0}
    _check_job(marshal.dumps({**record["job"], "split": split, "parent": None}, 2))
    return record


def plain(value: Any) -> Any:
    """Return a value in JSON types; numbers that are not finite become None.

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
