"""What stands beside the cells: sizes and deviations of the data, hardware, unreadable records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mmbench.running.record import is_done
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
        deviations={name: _deviations(records) for name, records in by_dataset.items()},
        sizes={name: _sizes(name, records, published) for name, records in by_dataset.items()},
        remarks=(*remarks, *_unreadable(experiment), *_environment(experiment)),
    )


def _deviations(records: list[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what is to be said of a data set: deviations, warnings, splits that are not official.

    Data that come with a list of splits may lack a part of it; drawn splits take its place.
    """
    texts = [text for r in records for text in (*r["deviations"], *r["warnings"])]
    origins = {_split(r): r["split"]["origin"] for r in records if _is_predefined(r)}
    drawn = sum(origin == "drawn" for origin in origins.values())
    if drawn:
        texts.append(f"{drawn} of {len(origins)} splits drawn at random in the official sizes")
    return tuple(dict.fromkeys(texts))


def _is_predefined(record: Mapping[str, Any]) -> bool:
    return record["job"]["split"]["rule"] == "predefined" and is_done(record)


def _split(record: Mapping[str, Any]) -> tuple[int, int]:
    return record["job"]["split"]["repeat"], record["job"]["split"]["fold"]


def _sizes(
    name: str, records: list[Mapping[str, Any]], published: pd.DataFrame | None
) -> dict[str, int]:
    """Return rows as trained and tested on, classes as seen, features as published."""
    sizes: dict[str, int] = {}
    for record in filter(is_done, records):
        sizes |= {part: record["split"][part] for part in ("n_train", "n_test")}
        sizes["n_classes"] = len({str(label) for p in record["per_pair"] for label in p["pair"]})
    if published is not None:
        rows = published[(published["dataset"] == name) & (published["metric"] == "n_features")]
        if len(rows):
            sizes["n_features"] = int(rows["value"].iloc[0])
    return sizes


def _unreadable(experiment: Experiment) -> tuple[str, ...]:
    count = len(experiment.unreadable)
    if not count:
        return ()
    return (f"{count} damaged record(s) left out, such as {experiment.unreadable[0]}.",)


def _environment(experiment: Experiment) -> tuple[str, ...]:
    """Return one line for each computer that made the records."""
    seen = dict.fromkeys(_computer(record["environment"]) for record in experiment.records)
    return tuple(f"Run with {text}." for text in seen if text)


def _computer(environment: Mapping[str, Any]) -> str:
    if not environment:
        return ""
    threads = environment["threads"]["pairs"]
    return (
        f"mmbench {environment['mmbench']}, Python {environment['python']}, {environment['cpu']}, "
        f"{threads} thread{'s' if threads > 1 else ''} a job"
    )
