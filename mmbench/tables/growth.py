"""Training time against training size: seconds of SVM and RMM apart, and exponents in n."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from mmbench.jobs.plan import Key
from mmbench.tables.model import Facts

SVM = "svm"
#: The RMMs of the figure, as (name of B, start); their certificates tell both trainings' times.
TIMED = {
    "rmm_b1": ("B₁", "warm"),
    "rmm_b1_cold": ("B₁", "cold"),
    "rmm_b2": ("B₂", "warm"),
    "rmm_b2_cold": ("B₂", "cold"),
    "rmm_b3": ("B₃", "warm"),
    "rmm_b3_cold": ("B₃", "cold"),
}


@dataclass(frozen=True)
class Exponent:
    """The slope of log seconds against log n by least squares, and its standard error."""

    value: float
    error: float | None

    def __str__(self) -> str:
        return f"{self.value:.2f}" + (f" ± {self.error:.2f}" if self.error is not None else "")


def seconds(key: Key, facts: Facts) -> float | None:
    """Return the mean CPU seconds of a machine's own training, without the Gram matrix.

    The SVM's are the mean over its trainings inside the RMMs on the same rows: equal calls, each
    of which is timed. The RMM's are without its SVM. None for a machine that does not tell.
    """
    if key.machine == SVM:
        return _mean(key, TIMED, "svm_cpu_seconds", facts)
    return _mean(key, [key.machine], "rmm_cpu_seconds", facts)


def _mean(key: Key, machines: Iterable[str], name: str, facts: Facts) -> float | None:
    """Return the mean of a number over all splits of some machines."""
    others = (key._replace(machine=machine) for machine in machines)
    times = [time for other in others for time in _extras(other, name, facts)]
    return fmean(times) if times else None


def _extras(key: Key, name: str, facts: Facts) -> list[float]:
    """Return a number of every split, summed over its pairs of classes."""
    found = []
    for pairs in facts.per_pair.get(key, {}).values():
        values = [pair["extra"].get(name) for pair in pairs]
        if None not in values:
            found.append(sum(values))
    return found


def curves(place: Key, sizes: Iterable[int], facts: Facts) -> dict[str, dict[int, float]]:
    """Return seconds by machine and training size, as far as they were measured.

    Parameters
    ----------
    place : Key
        Data set, kernel and degree.
    sizes : iterable of int
    facts : Facts
    """
    found: dict[str, dict[int, float]] = {}
    for machine in (SVM, *TIMED):
        for size in sizes:
            time = seconds(place._replace(machine=machine, size=size), facts)
            if time is not None:
                found.setdefault(machine, {})[size] = time
    return found


def gram_curve(place: Key, sizes: Iterable[int], facts: Facts) -> dict[int, float]:
    """Return the CPU seconds of the Gram matrix by training size, mean over the RMMs."""
    times = {
        size: _mean(place._replace(size=size), TIMED, "gram_cpu_seconds", facts) for size in sizes
    }
    return {size: time for size, time in times.items() if time is not None}


def whole(
    times: Mapping[str, Mapping[int, float]], gram: Mapping[int, float]
) -> dict[str, dict[int, float]]:
    """Return the seconds of whole trainings: the Gram matrix, the SVM, and the RMM that follows.

    Parameters
    ----------
    times : mapping
        As from `curves`.
    gram : mapping
        As from `gram_curve`.

    Examples
    --------
    >>> whole({"svm": {100: 1.0}, "rmm_b1": {100: 2.0}}, {100: 4.0})
    {'svm': {100: 5.0}, 'rmm_b1': {100: 7.0}}
    """
    before = {n: gram[n] + time for n, time in times.get(SVM, {}).items() if n in gram}
    return {
        machine: {
            n: before[n] + (0.0 if machine == SVM else time)
            for n, time in curve.items()
            if n in before
        }
        for machine, curve in times.items()
    }


def exponent(curve: Mapping[int, float]) -> Exponent | None:
    """Return the exponent of a curve; None for fewer than two sizes.

    Examples
    --------
    >>> str(exponent({100: 1.0, 200: 4.0, 400: 16.0}))
    '2.00 ± 0.00'
    >>> str(exponent({100: 1.0, 200: 4.0}))
    '2.00'
    """
    from scipy.stats import linregress

    times = {n: time for n, time in curve.items() if time > 0}
    if len(times) < 2:
        return None
    fit = linregress(np.log(list(times)), np.log(list(times.values())))
    return Exponent(float(fit.slope), float(fit.stderr) if len(times) > 2 else None)
