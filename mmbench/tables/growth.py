"""Training time against training size: seconds of SVM and RMM apart, and exponents in n.

The RMMs of figure 2 tell in their certificates what the Gram matrix, the SVM that gives theta and
the RMM itself took.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from mmbench.jobs.store import Key
from mmbench.tables.sheet import Sheet

SVM = "svm"
#: How the label of an RMM ends that starts from zero, not from the SVM's solution.
COLD = ", cold"

#: Seconds by training size, and such curves by machine.
Curve = Mapping[int, float]
Curves = Mapping[str, Curve]


@dataclass(frozen=True)
class Exponent:
    """The slope of log seconds against log n by least squares, and its standard error."""

    value: float
    error: float | None

    def __str__(self) -> str:
        return f"{self.value:.2f}" + (f" ± {self.error:.2f}" if self.error is not None else "")


def sizes_of(sheet: Sheet, place: Key) -> list[int]:
    """Return the training sizes of a data set and kernel, ascending."""
    places = (other for other in sheet.places if other._replace(size=None) == place)
    return sorted(other.size for other in places if other.size is not None)


def curves(sheet: Sheet, place: Key) -> dict[str, dict[int, float]]:
    """Return the CPU seconds of SVM and RMMs after the Gram matrix, as far as they were measured.

    The SVM's are the mean over its trainings inside the RMMs on the same rows: equal calls, each
    of which is timed. The RMM's are without its SVM.
    """
    rmms = [machine for machine in sheet.machines if machine != SVM]
    found = {SVM: _curve(sheet, place, "svm_cpu_seconds", rmms)}
    found |= {rmm: _curve(sheet, place, "rmm_cpu_seconds", [rmm]) for rmm in rmms}
    return {machine: curve for machine, curve in found.items() if curve}


def gram_curve(sheet: Sheet, place: Key) -> dict[int, float]:
    """Return the CPU seconds of the Gram matrix, mean over the RMMs, each of which computes it."""
    return _curve(sheet, place, "gram_cpu_seconds", sheet.machines)


def _curve(sheet: Sheet, place: Key, name: str, machines: Sequence[str]) -> dict[int, float]:
    """Return the mean of a number over all splits of some machines, by training size."""
    found = {}
    for size in sizes_of(sheet, place):
        keys = [place._replace(machine=machine, size=size) for machine in machines]
        values = [v for key in keys for v in extras(sheet.facts.per_pair.get(key, {}), name)]
        if values:
            found[size] = fmean(values)
    return found


def extras(splits: Mapping[tuple[int, int, int], Sequence[Mapping]], name: str) -> list[float]:
    """Return a number of every split that has it, summed over its pairs of classes."""
    found = ([pair["extra"].get(name) for pair in pairs] for pairs in splits.values())
    return [sum(values) for values in found if None not in values]


def whole(times: Curves, gram: Curve) -> dict[str, dict[int, float]]:
    """Return the seconds of whole trainings: the Gram matrix, the SVM, and the RMM that follows.

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


def exponent(curve: Curve) -> Exponent | None:
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
