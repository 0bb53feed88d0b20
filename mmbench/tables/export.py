"""Records as rows of flat tables: one row per split, or one row per test row."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from mmbench.jobs.record import Record
from mmbench.machines import alias_of
from mmbench.tables.records import Cell, Experiment

_PLACE = ("experiment", "dataset", "kernel", "degree", "size", "machine", "repeat", "fold")
_METRICS = ("accuracy_pct", "errors_count", "errors_expected", "n_ties")
_SIZES = ("n_train", "n_test")
_STAGES = ("selection", "training", "test", "calibration")
_CERTIFICATES = ("gap_tolerance", "worst_gap", "worst_violation")
_CODE = ("version", "fingerprint")

#: Columns of `split_rows`.
SPLIT_COLUMNS = (
    *_PLACE,
    *("seed", "data_hash", "split_hash", "status", "reason", *_METRICS, *_SIZES, "parameters"),
    *(f"seconds_{stage}" for stage in _STAGES),
    *("n_fits", "fits", "routes", *_CERTIFICATES, *_CODE, "record"),
)
#: Columns of `prediction_rows`.
PREDICTION_COLUMNS = (*_PLACE, "row", "label", "predicted", "decision", "record")


def split_rows(experiments: Iterable[Experiment]) -> Iterator[dict[str, Any]]:
    """Yield a row with `SPLIT_COLUMNS` for each record, including failed jobs.

    ``parameters``, ``fits`` and ``routes`` are JSON: the fixed and selected parameters (one object
    per pair of classes if parameters are selected per pair), the number of fits by status, and the
    number of fits by route. ``version`` and ``fingerprint`` identify the machine's code; they are
    empty for older records.
    """
    for experiment, cell, record in _records(experiments):
        fits = record.fits
        yield {
            **_place(experiment, cell, record),
            "seed": record.job.split.seed,
            "data_hash": record.job.dataset_hash,
            "split_hash": record.split.get("digest"),
            "status": record.status,
            "reason": record.reason,
            **{name: record.metrics.get(name) for name in _METRICS},
            **{name: record.split.get(name) for name in _SIZES},
            "parameters": json.dumps(_parameters(record)),
            **{f"seconds_{stage}": record.cpu_seconds.get(stage) for stage in _STAGES},
            "n_fits": fits.get("n"),
            "fits": json.dumps(fits.get("statuses", {})),
            "routes": json.dumps(fits.get("routes", {})),
            **{name: fits.get(name) for name in _CERTIFICATES},
            **{name: record.code.get(name) for name in _CODE},
        }


def prediction_rows(experiments: Iterable[Experiment]) -> Iterator[dict[str, Any]]:
    """Yield a row with `PREDICTION_COLUMNS` for each test row of each finished record.

    ``row`` is the index of the test row in the data set; ``decision`` is None if there are more
    than two classes.
    """
    for experiment, cell, record in _records(experiments):
        if not record.done or record.arrays is None:
            continue
        place, arrays = _place(experiment, cell, record), experiment.store.arrays(record.key)
        decisions = arrays["decisions"]
        for k, row in enumerate(arrays["test_index"]):
            yield {
                **place,
                "row": int(row),
                "label": str(arrays["y_test"][k]),
                "predicted": str(arrays["predicted"][k]),
                "decision": float(decisions[k, 0]) if decisions.shape[1] == 1 else None,
            }


def _records(experiments: Iterable[Experiment]) -> Iterator[tuple[Experiment, Cell, Record]]:
    for experiment in experiments:
        for cell in experiment.cells:
            for record in cell.records:
                yield experiment, cell, record


def _place(experiment: Experiment, cell: Cell, record: Record) -> dict[str, Any]:
    repeat, fold, _ = record.at
    place = {"experiment": experiment.name, **cell.key._asdict(), "repeat": repeat, "fold": fold}
    return {**place, "record": record.key}


def _parameters(record: Record) -> Any:
    fixed = {**alias_of(record.job.machine).params, **dict(record.job.params)}
    chosen = record.selection.get("params") or {}
    if isinstance(chosen, list):
        return [{**pair, **fixed} for pair in chosen]
    return {**chosen, **fixed}
