"""Training on samples of the rows, if the time limit is too short for a matrix of all rows."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import NoTimeLeft, allowed, time_left, within
from mmbench.errors import Status
from mmbench.machines.base.problem import BinaryModel

#: Number of rows of the first sample; problems with fewer rows are not sampled.
FIRST_SAMPLE = 250

#: Least number of seconds for the first samples of all pairs, even if the time limit is reached: a
#: matrix of all rows may be refused after most of the time has been spent.
FIRST_SECONDS = 0.5

#: Share of the remaining time that the next sample may need. Its time is predicted to grow with the
#: cube of the number of rows.
NEXT_SHARE = 0.5

#: Least number of rows of each class in the first sample; smaller classes are used whole.
LEAST_PER_CLASS = 2

#: A sample is trained only if it has at least LEAST_GROWTH times the rows of the sample before.
LEAST_GROWTH = 1.4


class Sampled(NamedTuple):
    """Models trained on a sample of the rows."""

    rows: NDArray
    models: list[BinaryModel]


def largest_sample(
    labels: NDArray, train: Callable[[NDArray], list[BinaryModel]], pairs_left: int = 1
) -> Sampled | None:
    """Train on larger and larger samples of the rows until the time limit.

    All samples have the shares of the classes in `labels`. Returns None if there are too few rows,
    or if the training on the first sample takes more than the remaining time and this pair's share
    of FIRST_SECONDS.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
    train : callable
        Returns the models that are trained on the rows with given ascending indices.
    pairs_left : int
        Number of pairs of classes that are not trained yet, including this one.
    """
    order, n, found = stratified_order(labels), FIRST_SAMPLE, None
    least = FIRST_SECONDS / pairs_left
    while n < len(labels) and max(time_left(), least) > 0:
        rows = np.sort(order[:n])
        began = time.monotonic()
        limits = allowed()  # without the mark that the limit was exceeded
        limits.end, least = max(limits.end, began + least), 0.0
        try:
            with within(limits):
                models = train(rows)
        except NoTimeLeft:
            break
        if limits.exceeded:
            break
        found = Sampled(rows, models)
        spent = max(time.monotonic() - began, 1e-3)
        growth = (NEXT_SHARE * time_left() / spent) ** (1 / 3)
        if growth < LEAST_GROWTH:
            break
        n = int(n * growth)
    return found


def stratified_order(labels: NDArray) -> NDArray:
    """Return all row indices, in an order whose beginnings have the shares of the classes.

    The rows of each class are shuffled, always in the same way, and placed at equal distances,
    except LEAST_PER_CLASS rows of each class, which are first.

    Examples
    --------
    >>> labels = np.repeat([0, 1], [40, 20])
    >>> np.bincount(labels[stratified_order(labels)[:12]])
    array([8, 4])
    """
    rng, place = np.random.default_rng(0), np.empty(len(labels))
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        rank = rng.permutation(len(own))
        place[own] = np.where(rank < LEAST_PER_CLASS, 0.0, (rank + 0.5) / len(own))
    return np.argsort(place, kind="stable")


def on_all_rows(model: BinaryModel, rows: NDArray, n_rows: int) -> BinaryModel:
    """Return a model of a sample as a model of all rows, without objective value and bound."""
    coef = None
    if model.coef is not None:
        coef = np.zeros(n_rows)
        coef[rows] = model.coef
    text = f"{len(rows)} of {n_rows} rows"
    reason = f"trained on {text}, since a matrix of all rows takes more time"
    fit = replace(
        model.fit,
        status=Status.TIME_LIMIT,
        objective=math.inf,
        bound=-math.inf,
        route=text,
        extra={**model.fit.extra, "reason": reason},
    )
    return BinaryModel(model.intercept, fit, coef, model.w)
