"""Evaluation of a fitted machine: test errors, certificates and calibrated probabilities.

scikit-learn's `CalibratedClassifierCV` computes probabilities from decision values of copies of the
machine on held-out rows.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from mmbench.allowance import OutOfTime, time_is_up
from mmbench.errors import FINISHED, SEVERITY, Status
from mmbench.jobs.job import Job
from mmbench.jobs.planned import grouped
from mmbench.jobs.prepare import Prepared
from mmbench.machines.base.estimator import PairwiseClassifier
from mmbench.machines.base.foreign import ForeignClassifier
from mmbench.machines.base.problem import Fit
from mmbench.machines.base.voting import expected_errors, n_ties, resolve_votes, votes
from mmbench.selection.folds import inner_splits


def evaluate(
    machine: PairwiseClassifier, data: Prepared, ties: str, seed: int
) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Return the metrics of a fitted machine on the test rows, and the arrays to store.

    The stored arrays are ``test_index``, ``predicted``, ``decisions`` (see `rounded`) and
    ``y_test``. If a classifier of another package computes class scores or probabilities, these
    arrays are stored as ``scores`` and ``probabilities``, and the labels of their columns as
    ``classes``. Raises ValueError if a decision value is NaN.
    """
    decisions = machine.pairwise_decision_function(data.X_test)
    if np.isnan(decisions).any():
        pair = machine.fits_[int(np.isnan(decisions).any(axis=0).argmax())].pair
        raise ValueError(f"decision values of the pair {_name(pair)} are not numbers")
    metrics, predicted = count_errors(decisions, machine.classes_, data.y_test, ties, seed)
    arrays = {
        "test_index": data.test_index,
        "predicted": storable(predicted),
        "decisions": rounded(decisions),
        "y_test": storable(data.y_test),
    }
    if isinstance(machine, ForeignClassifier):
        own, scores = machine.class_probabilities(data.X_test), machine.class_scores(data.X_test)
        found = {"probabilities": own, "scores": None if np.array_equal(own, scores) else scores}
        known = {name: values for name, values in found.items() if values is not None}
        arrays |= {"classes": storable(machine.classes_), **known} if known else {}
    return metrics, arrays


def rounded(decisions: NDArray) -> NDArray:
    """Return decision values as float32, or unchanged if rounding to float32 loses information.

    Information is lost if rounding changes a sign, or makes two different decision values of a pair
    of classes equal.

    Examples
    --------
    >>> rounded(np.array([[1.0], [2.0]])).dtype, rounded(np.array([[1e-60], [2.0]])).dtype
    (dtype('float32'), dtype('float64'))
    """
    largest = np.finfo(np.float32).max
    single = decisions.clip(-largest, largest).astype(np.float32)
    columns = zip(single.T, decisions.T, strict=True)
    same = all(len(np.unique(short)) == len(np.unique(long)) for short, long in columns)
    return single if same and np.array_equal(np.sign(single), np.sign(decisions)) else decisions


def count_errors(
    decisions: NDArray, classes: NDArray, y_test: NDArray, ties: str, seed: int
) -> tuple[dict[str, Any], NDArray]:
    """Return metrics and predicted labels, given decision values of shape (n_test, n_pairs).

    The errors and the accuracy are computed with the rule `ties` for tied votes. The rule
    "expected" counts expected errors without predicting labels, so the predicted labels follow the
    rule "lowest". Test rows of a class without training rows always count as errors.
    """
    counts = votes(decisions, len(classes))
    lowest = classes[resolve_votes(counts)]
    drawn = classes[resolve_votes(counts, np.random.RandomState(seed))]
    known = np.isin(y_test, classes)
    truth = np.searchsorted(classes, y_test[known])
    errors = {
        "lowest": int((lowest != y_test).sum()),
        "random": int((drawn != y_test).sum()),
        "expected": expected_errors(counts[known], truth) + int((~known).sum()),
    }
    predicted = drawn if ties == "random" else lowest
    right = predicted == y_test
    metrics = {
        "accuracy_pct": 100 * (1 - errors[ties] / len(y_test)),
        "worst_class_accuracy_pct": 100 * min(right[y_test == c].mean() for c in np.unique(y_test)),
        "errors_count": errors[ties],
        **{f"errors_{rule}": count for rule, count in errors.items()},
        "n_ties": n_ties(counts),
        "n_test": len(y_test),
    }
    return metrics, predicted


def certificates(fits: Sequence[Fit], gap_tolerance: float) -> dict[str, Any]:
    """Return the optimality certificates of all pairs of classes, and their summary.

    The summary contains `gap_tolerance`, the maximum relative duality gap of a solution with the
    status ``optimal``. An infinite `gap_tolerance` means that the status does not depend on the
    gap.
    """
    summary = {
        "n": len(fits),
        "statuses": dict(Counter(fit.status for fit in fits)),
        "routes": dict(Counter(fit.route for fit in fits if fit.route)),
        "worst_violation": max(fit.max_violation for fit in fits),
        "worst_gap": max(fit.gap for fit in fits),
        "gap_tolerance": gap_tolerance,
        "n_support_mean": sum(fit.n_support for fit in fits) / len(fits),
        "iterations": sum(fit.iterations for fit in fits),
    }
    return {"fits": summary, "per_pair": [{**asdict(fit), "gap": fit.gap} for fit in fits]}


def doubts(fits: Sequence[Fit]) -> str:
    """Return a text with the number of pairs of classes, and the first pair, per doubtful status.

    The statuses ``optimal``, ``stopped_by_rule`` and ``uncertified`` are not doubtful, since
    trainings with these statuses ended as intended.

    Examples
    --------
    >>> from mmbench.machines.base.problem import Fit
    >>> doubts([Fit("unbounded", -9.0, -np.inf, 0.0, 3, 0.1, 5, pair=("a", "b"))])
    'unbounded: 1 of 1 pairs, a/b (gap inf, violation 0)'
    """
    doubtful = (fit for fit in fits if fit.status not in (*FINISHED, Status.UNCERTIFIED))
    kinds = grouped((Status(fit.status), fit) for fit in doubtful)
    return "; ".join(
        f"{status}: {len(found)} of {len(fits)} pairs, {'first ' if found[1:] else ''}"
        f"{_name(found[0].pair)} (gap {found[0].gap:.2g}, violation {found[0].max_violation:.2g})"
        for status, found in sorted(kinds.items(), key=lambda kind: -SEVERITY.index(kind[0]))
    )


def _name(pair: Sequence[Any]) -> str:
    return "/".join(map(str, pair))


def storable(labels: NDArray) -> NDArray:
    """Return labels as text if they are Python objects, which ``.npz`` files must not contain."""
    return labels.astype(str) if labels.dtype.hasobject else labels


def calibrated_probabilities(
    machine: PairwiseClassifier, job: Job, data: Prepared, seed: int
) -> tuple[NDArray | None, list[str]]:
    """Return the class probabilities of the test rows, and warnings.

    `machine` must be fitted with the selected parameters. If the machine cannot be calibrated on
    the folds, the probabilities are None, and a warning gives the reason.
    """
    try:
        labels = np.searchsorted(machine.classes_, data.y_train)
        groups = None if data.groups_pool is None else data.groups_pool[: len(labels)]
        folds = inner_splits(labels, job.calibration_folds, None, 1, seed, groups)
        # if one group contains all rows of a class, the training part of one fold lacks the class
        if lacking := [k for train, _ in folds for k in np.setdiff1d(labels, labels[train])]:
            label = machine.classes_[lacking[0]]
            raise ValueError(f"the training part of a fold has no row of class {label}")
        own = clone(machine.estimator if isinstance(machine, ForeignClassifier) else machine)
        X_train, X_test = data.X_train, data.X_test
        if steps := data.label_steps:  # they are fitted in each fold
            own = make_pipeline(steps.unfitted, own)
            X_train, X_test = steps.X_pool[: len(labels)], steps.X_test
        model = CalibratedClassifierCV(own, method=job.calibrate, cv=folds, ensemble=False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model.fit(X_train, data.y_train)
    except MemoryError:
        raise
    except ValueError as error:
        return None, [f"calibration: no probabilities, as {error}"]
    if time_is_up():
        raise OutOfTime(0, len(folds) + 1)
    n = sum(issubclass(one.category, ConvergenceWarning) for one in caught)
    notes = [f"calibration: {n} of the trainings of pairs of classes are not optimal"] if n else []
    return model.predict_proba(X_test), notes
