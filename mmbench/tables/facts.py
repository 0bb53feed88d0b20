"""What stands beside the cells: sizes and deviations of the data, hardware, unreadable records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mmbench.jobs.job import Job
from mmbench.jobs.record import is_done
from mmbench.tables.cells import Key, key_of
from mmbench.tables.model import Facts
from mmbench.tables.records import Experiment

if TYPE_CHECKING:
    import pandas as pd


def gather_facts(
    experiment: Experiment, published: pd.DataFrame | None, remarks: tuple[str, ...]
) -> Facts:
    """Return the facts of an experiment."""
    by_dataset: dict[str, list[Mapping[str, Any]]] = {}
    for record in experiment.records:
        by_dataset.setdefault(record["job"]["dataset"]["name"], []).append(record)
    return Facts(
        experiment=experiment.name,
        published=published,
        deviations={name: _remarks_on_data(name, records) for name, records in by_dataset.items()},
        sizes={name: _sizes(name, records) for name, records in by_dataset.items()},
        by_split=_by_split(experiment, lambda record: record["metrics"]["accuracy_pct"]),
        per_pair=_by_split(experiment, lambda record: record["per_pair"]),
        hits=_hits(experiment),
        remarks=(
            *remarks,
            *_replaced(experiment),
            *_unreadable(experiment),
            *_environment(experiment),
        ),
    )


def _remarks_on_data(name: str, records: list[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the deviations of a data set and the warnings on a user's file, naming the data."""
    texts = dict.fromkeys(text for r in records for text in (*r["deviations"], *r["warnings"]))
    return tuple(text if text.startswith(name) else f"{name}: {text}" for text in texts)


def _sizes(name: str, records: list[Mapping[str, Any]]) -> dict[str, int]:
    """Return rows as trained and tested on, classes as seen, features before preprocessing."""
    from mmbench.datasets import card_names, load_card

    sizes: dict[str, int] = {}
    for record in filter(is_done, records):
        sizes |= {part: record["split"][part] for part in ("n_train", "n_test")}
        sizes["n_classes"] = len({str(label) for p in record["per_pair"] for label in p["pair"]})
    if name in card_names():
        sizes["n_features"] = load_card(name).expect.shape[1]
    return sizes


def _by_split(
    experiment: Experiment, read: Callable[[Mapping[str, Any]], Any]
) -> dict[Key, dict[tuple[int, int], Any]]:
    """Return something of every finished record, by its cell and split."""
    found: dict[Key, dict[tuple[int, int], Any]] = {}
    for record in filter(is_done, experiment.records):
        job = Job.from_dict(record["job"])
        splits = found.setdefault(key_of(job), {})
        splits[job.split.repeat, job.split.fold] = read(record)
    return found


def _replaced(experiment: Experiment) -> tuple[str, ...]:
    count = experiment.replaced
    return (f"{count} record(s) of earlier versions of a machine left out.",) if count else ()


def _hits(experiment: Experiment) -> Callable[[Key, tuple[int, int]], Any]:
    """Return `Facts.hits`; the arrays of a run are read when it is asked for."""
    keys = _by_split(experiment, lambda record: record["key"] if record["arrays"] else None)

    def hits(key: Key, split: tuple[int, int]) -> Any:
        record = keys.get(key, {}).get(split)
        if record is None:
            return None
        arrays = experiment.store.arrays(record)
        return arrays["predicted"] == arrays["y_test"]

    return hits


def _unreadable(experiment: Experiment) -> tuple[str, ...]:
    count = len(experiment.unreadable)
    if not count:
        return ()
    return (f"{count} damaged record(s) left out, such as {experiment.unreadable[0]}.",)


def _environment(experiment: Experiment) -> tuple[str, ...]:
    """Return one line for each computer and version that made the records."""
    threads: dict[str, set[int]] = {}
    for found in (record["environment"] for record in experiment.records if is_done(record)):
        computer = f"mmbench {found['mmbench']}, Python {found['python']}, {found['cpu']}"
        threads.setdefault(computer, set()).add(found["threads"]["pairs"])
    return tuple(
        f"Run with {computer}; pairs of classes trained at a time: {_any_of(counts)}."
        for computer, counts in threads.items()
    )


def _any_of(numbers: set[int]) -> str:
    return " or ".join(map(str, sorted(numbers)))
