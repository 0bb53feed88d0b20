"""The RMM with its time told apart from the SVM's, and from zero: figure 2 of the RMM paper.

The paper trains the SVM, takes ``theta = max |f(x_i)|``, and then the RMM at

    B1 = 1 + (theta - 1) / 2,   B2 = 1 + (theta - 1) / 4,   B3 = 1 + (theta - 1) / 10,

from the SVM's solution (warm) or from zero (cold). The machine is that of `RMM`;
only its clock differs. Times are CPU seconds of one thread, those of the Gram matrix apart: the
paper speaks of training time and does not say whether kernel values are part of it.

References
----------
P. K. Shivaswamy, T. Jebara: Relative margin machines. NIPS 21, 2008.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, TypeVar

import numpy as np

from mmbench.machines.parameter import Param, choice
from mmbench.machines.problem import BinaryModel, BinaryProblem
from mmbench.machines.rmm.rmm import RMM, train_rmm
from mmbench.machines.search_space import MemoryNeeds
from mmbench.machines.svm import train_svm

Result = TypeVar("Result")


class TimedRMM(RMM):
    """RMM whose `Fit.extra` tells the CPU seconds of its two trainings and of the Gram matrix.

    Parameters are those of `RMM`, `form` being "bound". `extra` holds ``gram_cpu_seconds``,
    ``svm_cpu_seconds`` and ``rmm_cpu_seconds`` beside ``theta`` and ``B``. A path of a grid search
    trains each machine anew: a start from another grid point would be neither warm nor cold in the
    paper's sense.
    """

    parameters: ClassVar[dict[str, Param]] = RMM.parameters | {"form": choice("bound")}
    warm_start: ClassVar[bool] = True
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(gram_copies=3)  # the caller's beside RMM's
    version: ClassVar[int] = 2  # 1 did not time the Gram matrix

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        # Computed here even where the caller has it: a run keeps it for all its machines.
        gram, gram_seconds = _timed(lambda: problem.kernel(problem.X, problem.X))
        problem = BinaryProblem(problem.X, problem.y, problem.kernel, gram, problem.classes)
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
                "gram_cpu_seconds": gram_seconds,
                "svm_cpu_seconds": svm_seconds,
                "rmm_cpu_seconds": seconds,
            },
        )
        return replace(model, fit=fit)


def _timed(compute: Callable[[], Result]) -> tuple[Result, float]:
    """Return what a computation yields, and the CPU seconds of this thread that it took."""
    started = time.thread_time()
    result = compute()
    return result, time.thread_time() - started


class ColdRMM(TimedRMM):
    """`TimedRMM` from zero."""

    warm_start = False
