"""The facts of a run: configuration, data with hashes and deviations, versions, machines, seeds."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from mmbench.jobs.record import Record
from mmbench.jobs.store import CONFIG
from mmbench.tables.records import Experiment
from mmbench.tables.report.view import View
from mmbench.tables.report.words import Facts


def config_text(view: View) -> str:
    """Return the configuration as run; empty where it is not known."""
    if not isinstance(view.experiment, Experiment):
        return ""
    return (view.experiment.folder / CONFIG).read_text(encoding="utf-8", errors="replace")


def data_facts(view: View) -> list[dict[str, Any]]:
    """Return a line a data set: sizes, hash, preprocessing, licence, deviations."""
    by_name: dict[str, list[Record]] = {}
    for record in _records(view):
        by_name.setdefault(record.job.dataset.name, []).append(record)
    return [_data_line(view, name, records) for name, records in by_name.items()]


def _data_line(view: View, name: str, records: list[Record]) -> dict[str, Any]:
    from mmbench.datasets import card_names, load_card
    from mmbench.tables.protocol import preprocessed

    card = load_card(name) if name in card_names() else None
    sizes = view.sheet.facts.sizes.get(name, {})
    return {
        "name": name,
        "title": card.title if card else str(records[0].job.dataset.path or ""),
        "sizes": sizes,
        "hashes": sorted({record.job.dataset_hash for record in records}),
        "preprocessing": preprocessed([record.job for record in records]),
        "splits": len({record.split["digest"] for record in records if record.done}),
        "licence": card.licence if card else "",
        "deviations": view.sheet.facts.deviations.get(name, ()),
    }


def run_facts(view: View) -> Facts:
    """Return versions, computers, threads and seeds, each with how many records have it."""
    records = [record for record in _records(view) if record.environment]
    if not records:
        return []
    environments = [record.environment for record in records]
    facts = {
        "mmbench": (e["mmbench"] for e in environments),
        "Python": (e["python"] for e in environments),
        "computer": (_computer(e) for e in environments),
        "libraries": (_versions(e.get("libraries", {})) for e in environments),
        "threads": (_threads(e.get("threads", {})) for e in environments),
        "master seed": (r.seeds.get("master", r.job.split.seed) for r in records),
        "limits of a job": (_limits(r.limits) for r in records),
    }
    return [(name, _counted(values, len(records))) for name, values in facts.items()]


def _records(view: View) -> list[Record]:
    return view.experiment.records if isinstance(view.experiment, Experiment) else []


def _computer(environment: Any) -> str:
    parts = [environment["cpu"]]
    parts += [f"{environment['cores']} cores"] if "cores" in environment else []
    return ", ".join([*parts, *filter(None, [environment.get("platform")])])


def _versions(libraries: Any) -> str:
    return ", ".join(f"{name} {version}" for name, version in libraries.items())


def _threads(threads: Any) -> str:
    pools = (f"{name}: {count}" for name, count in sorted(threads.get("libraries", {}).items()))
    return ", ".join([f"pairs of classes at a time: {threads.get('pairs')}", *pools])


def _limits(limits: Any) -> str:
    time, memory = limits.get("time"), limits.get("memory")
    parts = [f"{time:g} s" if time else "", f"{memory / 1e6:.0f} MB" if memory else ""]
    return ", ".join(filter(None, parts)) or "none"


def _counted(values: Iterable[Any], total: int) -> str:
    """Return the distinct values, with how many records have each where there are several."""
    counts = Counter(str(value) for value in values)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{value} ({count} of {total} records)" for value, count in counts.items())
