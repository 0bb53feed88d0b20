"""The frame ``splits``: one row per record, with settings, metrics, certificates and versions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.jobs.choice import choice_of, merged
from mmbench.jobs.job import Job
from mmbench.jobs.planned import Plan, key_of
from mmbench.jobs.record import Record
from mmbench.jobs.store import Arrays
from mmbench.machines import alias_of
from mmbench.selection.metrics import METRICS

#: Stages of a job whose CPU times are measured. Only jobs with calibrated probabilities have the
#: stage "calibration".
STAGES, CALIBRATION = ("selection", "training", "test"), "calibration"
SECONDS = tuple(f"seconds_{stage}" for stage in (*STAGES, CALIBRATION))
#: Columns that identify the code of a machine; see `mmbench.jobs.identity`.
CODE = ("version", "fingerprint")
#: Columns that identify a record in the table of predictions.
IDENTIFIED = ("experiment", "dataset", "kernel", "degree", "size", "machine", "repeat", "fold")
#: Columns of the table of predictions that are added to the columns of the split.
PREDICTIONS = ("row", "label", "predicted", "decision")
#: Columns of the frame ``splits`` that a record holds under these names.
MEASURED = ("accuracy_pct", "errors_count", "errors_expected", "n_ties", "worst_class_accuracy_pct")
DIMENSIONS = ("n_train", "n_test", "n_train_pair", "n_test_pair", "n_features")


def split_row(experiment: str, plan: Plan, record: Record) -> dict[str, Any]:
    """Return the row of the frame ``splits`` for the record of a finished or failed job."""
    job, fits, split, run = record.job, record.fits, record.split, record.environment
    fixed = {**alias_of(job.machine).params, **dict(job.params)}
    chosen, (repeat, fold, seed) = choice_of(record.selection), record.at
    parameters = merged(chosen, [fixed])
    warnings = (*record.deviations, *record.warnings)
    start = f"{job.dataset.name}: "
    bounds = [fit.get("extra", {}).get("worst_case_accuracy") for fit in record.per_pair]
    bound = bounds[0] if len(bounds) == 1 else None
    return {
        "experiment": experiment,
        **key_of(job)._asdict(),
        "label": plan.label(job.column),
        "estimator": job.machine,
        "repeat": repeat + 1,
        "fold": fold + 1,
        "seed": seed,
        "data_hash": job.dataset_hash,
        "split_hash": split.get("digest"),
        "status": str(record.status),
        "reason": record.reason,
        **{name: record.metrics.get(name) for name in MEASURED},
        # the lower bound on the accuracy of the worse of two classes; records may be forged
        "worst_case_accuracy_pct": 100.0 * bound if isinstance(bound, int | float) else None,
        **{name: split.get(name) for name in DIMENSIONS},
        "classes": [*job.dataset.classes],
        "n_classes": len({str(label) for fit in record.per_pair for label in fit["pair"]}) or None,
        "parameters": parameters if parameters[1:] else parameters[0],
        "defaults": dict(job.defaults),
        "chosen": chosen if any(chosen) else [],
        "grid": dict(job.grid),
        "uses": job.use or "",
        **{name: record.cpu_seconds.get(name.removeprefix("seconds_")) for name in SECONDS},
        "n_support": fits.get("n_support_mean"),
        "n_fits": fits.get("n"),
        "fits": fits.get("statuses", {}),
        "routes": fits.get("routes", {}),
        **{name: fits.get(name) for name in ("gap_tolerance", "worst_gap", "worst_violation")},
        "certificates": record.per_pair,
        "test": test_of(job),
        "selection": selection_of(job),
        "preprocess": [*job.dataset.preprocess],
        "calibration": f"{job.calibrate}, {job.calibration_folds} folds" if job.calibrate else "",
        "deviations": [text.removeprefix(start) for text in warnings],
        **{name: record.code.get(name) for name in CODE},
        "mmbench": run.get("mmbench"),
        "python": run.get("python"),
        "computer": run.get("cpu"),
        "pairs_at_a_time": run.get("threads", {}).get("pairs"),
        "libraries": run.get("libraries", {}),
        "finished": record.finished,
        "record": record.key,
    }


def test_of(job: Job) -> dict[str, Any]:
    """Return the rule of the train/test splits of a job."""
    split, data = job.split, job.dataset
    return {
        "rule": split.rule,
        "argument": split.args[0] if split.args else 0,
        "max_train": split.max_train,
        "groups": dict(data.options).get("groups"),
        "folds_file": data.folds is not None,
    }


def selection_of(job: Job) -> dict[str, Any]:
    """Return how the parameters of a job are selected; an empty dict if they are fixed.

    The entry "parents" is the number of splits of another experiment whose selected parameters the
    job takes; "median" states whether the job takes their median.
    """
    if job.use == job.column:
        return {"parents": len(job.parents), "median": job.shares}
    if not job.grid:
        return {}
    names = ("folds", "split", "repeats", "metric", "scope")
    return {name: getattr(job.select, name) for name in names}


# -- metrics of stored predictions -----------------------------------------------------------------


def value_of(name: str, record: Record, arrays: Arrays) -> float | str:
    """Return the value of a metric for the predictions of one record.

    If the metric cannot be computed, return a text that names the missing input, for example
    "probabilities". The argument `name` is a key of `mmbench.selection.metrics.METRICS`. The
    argument `arrays` contains the stored arrays of the record, such as predictions.
    """
    metric = METRICS[name]
    if "predicted" not in arrays:
        return "predictions"
    truth = arrays["y_test"].astype(str)
    if metric.source == "predictions":
        if len(truth) == 1:
            return "a second test row"
        return metric.compute(truth, arrays["predicted"].astype(str), np.unique(truth))
    found = class_scores(record, arrays, metric.source == "scores")
    if isinstance(found, str):
        return found
    value = metric.compute(truth, found[1], found[0])
    return metric.needs if math.isnan(value) else value


def class_scores(record: Record, arrays: Arrays, scored: bool) -> tuple[NDArray, NDArray] | str:
    """Return the classes, and the scores (`scored`) or the probabilities of the test rows with one
    column per class; or a text that names the missing input.
    """
    from mmbench.machines.base.voting import ovr_scores, summed_decisions

    if "classes" in arrays:
        classes = arrays["classes"].astype(str)
    elif not record.per_pair:
        return "the classes"
    else:  # classes in sorted order, collected from the pairs of classes
        pairs = [tuple(map(str, fit["pair"])) for fit in record.per_pair]
        classes = np.array(list(dict.fromkeys([pairs[0][0], *(second for _, second in pairs)])))
    # Older records contain logits as scores, which do not rank the rows if there are more than two
    # classes. If a classifier from another package only has the decision values 1 and -1, these
    # values are predictions, and are not used as scores.
    logits = len(classes) > 2 and "probabilities" in arrays and not record.job.calibrate
    if scored and "scores" in arrays and not logits:
        return classes, arrays["scores"]
    if scored and (record.status != Status.UNCERTIFIED or (abs(arrays["decisions"]) != 1).any()):
        scores = summed_decisions if len(classes) == 2 else ovr_scores
        return classes, scores(arrays["decisions"].astype(float), len(classes))
    if "probabilities" in arrays:
        return classes, arrays["probabilities"]
    return "decision values" if scored else "probabilities"


def prediction_rows(split: Mapping[str, Any], arrays: Arrays) -> Iterator[dict[str, Any]]:
    """Yield one row per test row of a split, with the columns of the split and `PREDICTIONS`.

    The column ``row`` contains the index of the test row in the data set. The column ``decision``
    contains the decision value, or None if there are more than two classes.
    """
    for k, row in enumerate(arrays.get("test_index", ())):
        decisions = arrays["decisions"][k]
        yield {
            **split,
            "row": int(row),
            "label": str(arrays["y_test"][k]),
            "predicted": str(arrays["predicted"][k]),
            "decision": float(decisions[0]) if len(decisions) == 1 else None,
        }


def counts_of_rows(
    parts: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each row of a data set, in how many splits it was right, and was tested.

    `parts` contains, for each split of one machine, the tested rows and which of them were right.
    """
    index, hits = map(np.concatenate, zip(*parts, strict=True))
    right, tested = np.zeros((2, 1 + int(index.max())), dtype=int)
    np.add.at(right, index, hits)
    np.add.at(tested, index, 1)
    return right, tested
