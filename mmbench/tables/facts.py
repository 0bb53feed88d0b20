"""What stands beside the cells: sizes and deviations of the data, single splits, hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmbench.jobs.record import Record
from mmbench.jobs.store import Key
from mmbench.tables.metrics import Measures, Split
from mmbench.tables.protocol import protocol
from mmbench.tables.records import Experiment
from mmbench.tables.rows import Published
from mmbench.tables.summaries.fits import Fits, fits_of
from mmbench.tables.summaries.selected import Selected, selected

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMOKE = "Smoke version: fewer splits, rows and grid points; nothing is compared with the paper."


@dataclass(frozen=True)
class Facts:
    """What a layout must know beside its rows."""

    experiment: str
    #: The rows of the published table compared with.
    published: Sequence[Published] = ()
    #: By data set: where the data differ from what the paper used, or look suspicious.
    deviations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: By data set: ``n_train``, ``n_test``, ``n_classes``, ``n_features`` as far as known.
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Accuracy in per cent of every split that counts.
    by_split: Mapping[Key, Mapping[Split, float]] = field(default_factory=dict)
    #: The metrics that are asked for.
    measures: Measures = field(default_factory=Measures)
    #: The certificates of the pairs of classes of every finished split.
    per_pair: Mapping[Key, Mapping[Split, list]] = field(default_factory=dict)
    #: The certificates of each machine.
    fits: Mapping[str, Fits] = field(default_factory=dict)
    #: The parameters that each cell's machine has selected.
    selected: Mapping[Key, Sequence[Selected]] = field(default_factory=dict)
    #: Takes a Key and a split, or a repeat and a fold (of several seeds the first), and returns
    #: which test rows that run has right, shape (n_test,), or None where there is no such run.
    hits: Callable[[Key, tuple[int, ...]], NDArray | None] = lambda key, split: None
    #: How test parts are made, as in `SplitRef`; empty where it is not known.
    rule: str = ""
    #: What was done: test parts, choice of parameters, preprocessing.
    protocol: tuple[str, ...] = ()
    #: On the whole run: hardware, damaged records, mixed settings.
    remarks: tuple[str, ...] = ()


def gather_facts(
    experiment: Experiment,
    published: Sequence[Published] = (),
    measures: Measures | None = None,
) -> Facts:
    """Return the facts of an experiment."""
    by_dataset: dict[str, list[Record]] = {}
    for record in experiment.records:
        by_dataset.setdefault(record.job.dataset.name, []).append(record)
    jobs = [record.job for cell in experiment.cells for record in cell.records]
    return Facts(
        experiment=experiment.name,
        published=published,
        deviations={name: _remarks_on_data(name, records) for name, records in by_dataset.items()},
        sizes={name: _sizes(name, records) for name, records in by_dataset.items()},
        by_split=_by_split(experiment, lambda record: record.metrics["accuracy_pct"]),
        measures=measures or Measures(),
        per_pair={cell.key: {r.at: r.per_pair for r in cell.done} for cell in experiment.cells},
        fits=_fits(experiment),
        selected={cell.key: selected(cell.done) for cell in experiment.cells},
        hits=_hits(experiment),
        rule=next((job.split.rule for job in jobs), ""),
        protocol=protocol(jobs, experiment.plan.label),
        remarks=(
            *_leak(experiment),
            *([SMOKE] if experiment.plan.smoke else []),
            *experiment.remarks,
            *_environment(experiment),
        ),
    )


def _remarks_on_data(name: str, records: list[Record]) -> tuple[str, ...]:
    """Return the deviations of a data set and the warnings on a user's file."""
    texts = (text for record in records for text in (*record.deviations, *record.warnings))
    return tuple(dict.fromkeys(text.removeprefix(f"{name}: ") for text in texts))


def _sizes(name: str, records: list[Record]) -> dict[str, int]:
    """Return rows as trained and tested on, classes as seen, features before preprocessing."""
    from mmbench.datasets import card_names, load_card

    sizes: dict[str, int] = {}
    for record in records:
        if record.done:
            known = {"n_train", "n_test", "n_features"} & record.split.keys()
            sizes |= {part: record.split[part] for part in known}
            # what knows no pairs, such as a classifier of another package, names fewer classes
            classes = {str(label) for pair in record.per_pair for label in pair["pair"]}
            sizes["n_classes"] = max(sizes.get("n_classes", 0), len(classes))
    if name in card_names():
        sizes["n_features"] = load_card(name).expect.shape[1]
    return sizes


def _by_split(experiment: Experiment, read: Callable[[Record], Any]) -> dict[Key, dict[Split, Any]]:
    """Return something of every record that counts, by its cell and split."""
    return {
        cell.key: {record.at: read(record) for record in cell.counted} for cell in experiment.cells
    }


def _fits(experiment: Experiment) -> dict[str, Fits]:
    """Return the certificates of each machine that has any."""
    by_machine: dict[str, list[Record]] = {}
    for cell in experiment.cells:
        by_machine.setdefault(cell.key.machine, []).extend(cell.done)
    return {machine: fits_of(records) for machine, records in by_machine.items() if records}


def _hits(experiment: Experiment) -> Callable[[Key, tuple[int, ...]], Any]:
    """Return `Facts.hits`; the arrays of a run are read when it is asked for."""
    keys = _by_split(experiment, lambda record: record.key if record.arrays else None)

    def hits(key: Key, split: tuple[int, ...]) -> Any:
        found = keys.get(key, {})
        record = next((found[at] for at in sorted(found) if at[: len(split)] == split), None)
        if record is None:
            return None
        arrays = experiment.store.arrays(record)
        return arrays["predicted"] == arrays["y_test"]

    return hits


def _leak(experiment: Experiment) -> tuple[str, ...]:
    if not any(record.job.validates_on_test for record in experiment.records):
        return ()
    return ("LEAK: parameters were chosen by the accuracy on the test part; it is too high.",)


def _environment(experiment: Experiment) -> tuple[str, ...]:
    """Return one line for each computer and version that made the records."""
    threads: dict[str, set[int]] = {}
    for found in (record.environment for record in experiment.records if record.done):
        computer = f"mmbench {found['mmbench']}, Python {found['python']}, {found['cpu']}"
        threads.setdefault(computer, set()).add(found["threads"]["pairs"])
    return tuple(
        f"Run with {computer}; pairs of classes trained at a time: "
        f"{' or '.join(map(str, sorted(counts)))}."
        for computer, counts in threads.items()
    )
