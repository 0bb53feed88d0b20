"""The RMM with its time told apart from the SVM's, and from zero: figure 2 of the RMM paper.

The paper trains the SVM, takes ``theta = max |f(x_i)|``, and then the RMM at

    B1 = 1 + (theta - 1) / 2,   B2 = 1 + (theta - 1) / 4,   B3 = 1 + (theta - 1) / 10,

from the SVM's solution (warm) or from zero (cold). The machine is that of `mmbench.machines.rmm`;
only its clock differs. Times are CPU seconds of one thread, without the Gram matrix.

References
----------
P. K. Shivaswamy, T. Jebara: Relative margin machines. NIPS 21, 2008.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import numpy as np

from mmbench.machines.base import BinaryModel, BinaryProblem
from mmbench.machines.parameters import Param, choice
from mmbench.machines.presets import preset
from mmbench.machines.rmm import RMM, train_rmm
from mmbench.machines.svm import train_svm


class TimedRMM(RMM):
    """RMM whose `Fit.extra` tells the CPU seconds of its two trainings.

    Parameters are those of `RMM`, `form` being "bound". `extra` holds ``svm_cpu_seconds`` and
    ``rmm_cpu_seconds`` beside ``theta`` and ``B``. A path of a grid search trains each machine
    anew: a start from another grid point would be neither warm nor cold in the paper's sense.
    """

    parameters: ClassVar[dict[str, Param]] = RMM.parameters | {"form": choice("bound")}
    warm_start: ClassVar[bool] = True

    def _train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        assert problem.gram is not None  # computed here, before any clock runs
        svm, svm_seconds = _timed(lambda: train_svm(problem, self.C, self.solver, self.tol))
        theta = float(np.abs(svm.state + svm.intercept).max())
        B = float(1 + self.B_fraction * (theta - 1) if self.B is None else self.B)
        start = svm.coef if self.warm_start else None
        model, seconds = _timed(lambda: train_rmm(problem, self.C, B, self.solver, self.tol, start))
        fit = replace(
            model.fit,
            iterations=svm.fit.iterations + model.fit.iterations,
            seconds=svm.fit.seconds + model.fit.seconds,
            extra={
                "theta": theta,
                "B": B,
                "svm_cpu_seconds": svm_seconds,
                "rmm_cpu_seconds": seconds,
            },
        )
        return replace(model, fit=fit)


def _timed(train: Callable[[], BinaryModel]) -> tuple[BinaryModel, float]:
    """Return what a training yields, and the CPU seconds of this thread that it took."""
    started = time.thread_time()
    model = train()
    return model, time.thread_time() - started


@preset(B_fraction=1 / 2)
class RMMb1(TimedRMM):
    """RMM at B1, from the SVM's solution."""


@preset(B_fraction=1 / 4)
class RMMb2(TimedRMM):
    """RMM at B2, from the SVM's solution."""


@preset(B_fraction=1 / 10)
class RMMb3(TimedRMM):
    """RMM at B3, from the SVM's solution."""


class RMMb1Cold(RMMb1):
    """RMM at B1, from zero."""

    warm_start = False


class RMMb2Cold(RMMb2):
    """RMM at B2, from zero."""

    warm_start = False


class RMMb3Cold(RMMb3):
    """RMM at B3, from zero."""

    warm_start = False
