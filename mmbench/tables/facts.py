"""What stands beside the cells: sizes and deviations of the data, hardware, unreadable records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mmbench.jobs.plan import Key, key_of
from mmbench.jobs.record import Record
from mmbench.tables.model import Facts
from mmbench.tables.records import Experiment

if TYPE_CHECKING:
    import pandas as pd


def gather_facts(experiment: Experiment, published: pd.DataFrame | None = None) -> Facts:
    """Return the facts of an experiment."""
    by_dataset: dict[str, list[Record]] = {}
    for record in experiment.records:
        by_dataset.setdefault(record.job.dataset.name, []).append(record)
    return Facts(
        experiment=experiment.name,
        published=published,
        deviations={name: _remarks_on_data(name, records) for name, records in by_dataset.items()},
        sizes={name: _sizes(name, records) for name, records in by_dataset.items()},
        by_split=_by_split(experiment, lambda record: record.metrics["accuracy_pct"]),
        per_pair=_by_split(experiment, lambda record: record.per_pair),
        hits=_hits(experiment),
        remarks=(
            *_leak(experiment),
            *experiment.remarks,
            *_environment(experiment),
        ),
    )


def _remarks_on_data(name: str, records: list[Record]) -> tuple[str, ...]:
    """Return the deviations of a data set and the warnings on a user's file, naming the data."""
    texts = dict.fromkeys(text for r in records for text in (*r.deviations, *r.warnings))
    return tuple(text if text.startswith(name) else f"{name}: {text}" for text in texts)


def _sizes(name: str, records: list[Record]) -> dict[str, int]:
    """Return rows as trained and tested on, classes as seen, features before preprocessing."""
    from mmbench.datasets import card_names, load_card

    sizes: dict[str, int] = {}
    for record in (r for r in records if r.done):
        sizes |= {part: record.split[part] for part in ("n_train", "n_test")}
        sizes["n_classes"] = len({str(label) for p in record.per_pair for label in p["pair"]})
    if name in card_names():
        sizes["n_features"] = load_card(name).expect.shape[1]
    return sizes


def _by_split(
    experiment: Experiment, read: Callable[[Record], Any]
) -> dict[Key, dict[tuple[int, int], Any]]:
    """Return something of every finished record, by its cell and split."""
    found: dict[Key, dict[tuple[int, int], Any]] = {}
    for record in (r for r in experiment.records if r.done):
        found.setdefault(key_of(record.job), {})[record.at] = read(record)
    return found


def _leak(experiment: Experiment) -> tuple[str, ...]:
    if not any(record.job.validates_on_test for record in experiment.records):
        return ()
    return ("LEAK: parameters were chosen by the accuracy on the test part; it is too high.",)


def _hits(experiment: Experiment) -> Callable[[Key, tuple[int, int]], Any]:
    """Return `Facts.hits`; the arrays of a run are read when it is asked for."""
    keys = _by_split(experiment, lambda record: record.key if record.arrays else None)

    def hits(key: Key, split: tuple[int, int]) -> Any:
        record = keys.get(key, {}).get(split)
        if record is None:
            return None
        arrays = experiment.store.arrays(record)
        return arrays["predicted"] == arrays["y_test"]

    return hits


def _environment(experiment: Experiment) -> tuple[str, ...]:
    """Return one line for each computer and version that made the records."""
    threads: dict[str, set[int]] = {}
    for found in (record.environment for record in experiment.records if record.done):
        computer = f"mmbench {found['mmbench']}, Python {found['python']}, {found['cpu']}"
        threads.setdefault(computer, set()).add(found["threads"]["pairs"])
    return tuple(
        f"Run with {computer}; pairs of classes trained at a time: {_any_of(counts)}."
        for computer, counts in threads.items()
    )


def _any_of(numbers: set[int]) -> str:
    return " or ".join(map(str, sorted(numbers)))
