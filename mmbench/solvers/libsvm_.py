"""Adapters for libsvm and liblinear, as checks of the solvers here.

libsvm-official (extra ``solvers``) has no row weights: for them, or if it is not installed,
scikit-learn's copy of libsvm is used.
"""

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mmbench.allowance import Shared
from mmbench.errors import Status, memory_of
from mmbench.solvers.result import note_status
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution

#: Size of libsvm's kernel cache in megabytes.
CACHE_MB = 500

#: With the default of 1000 passes, liblinear often misses the tolerance 1e-5 on few hundred rows.
LIBLINEAR_PASSES = 100_000

#: libsvm's limit of iterations up to 100,000 rows; above, 100 times the number of rows.
LEAST_STEP_LIMIT = 10_000_000


@memory_of("libsvm")
def solve_libsvm(
    problem: PiecewiseQP,
    y: NDArray,
    C: float | NDArray,
    tol: float = 1e-5,
    solver: str = "reference",
) -> PiecewiseSolution:
    """Solve the dual of the SVM by libsvm, with a precomputed Gram matrix.

    Parameters
    ----------
    problem : PiecewiseQP
        The dual of the SVM, made by `mmbench.machines.svm.svm_dual`.
    y : ndarray of shape (n,)
        Labels -1.0 and +1.0.
    C : float or ndarray of shape (n,)
        Penalty on the slack variables: one number, or one number per row.
    tol : float, default=1e-5
        Option `eps` of libsvm, the tolerance of the KKT conditions.
    solver : {"reference", "libsvm", "sklearn"}, default="reference"
        "libsvm" is libsvm-official, and "sklearn" is scikit-learn's copy of libsvm. "reference" is
        libsvm-official if it is installed and `C` is a number, otherwise scikit-learn's copy of
        libsvm.

    Returns
    -------
    PiecewiseSolution
        `iterations` is 0 and `status` is ``optimal``, since libsvm reports neither its number of
        iterations nor a failure. The duality gap and the violation of the solution are computed
        from feasible dual variables u and a recomputed ``Ku``.

    Raises
    ------
    ModuleNotFoundError
        If `solver` is "libsvm" and libsvm-official is not installed.
    ValueError
        If `solver` is "libsvm" and `C` is an array.
    """
    if solver == "libsvm" and find_spec("libsvm") is None:
        raise ModuleNotFoundError(
            "solver 'libsvm' needs the package libsvm-official: pip install 'mmbench[solvers]'"
        )
    if solver == "libsvm" and isinstance(C, np.ndarray):
        raise ValueError("libsvm-official supports no row weights; take solver='sklearn'")
    if solver == "sklearn" or isinstance(C, np.ndarray) or find_spec("libsvm") is None:
        support, coef, bias = _weighted(problem.gram, y, C * np.ones(len(y)), tol)
    else:
        support, coef, bias = _plain(problem.gram, y, C, tol)
    u = np.zeros(len(y))
    u[support] = coef
    u = problem.feasible(u)
    note_status(Status.OPTIMAL)
    return problem.solution(u, problem.gram @ u, bias, 0, Status.OPTIMAL, route="libsvm")


@contextmanager
def _quiet() -> Iterator[None]:
    # only messages of scikit-learn: a machine in another thread may warn at the same time
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solver terminated early|Liblinear failed to converge")
        yield


QUIET = Shared(_quiet)

#: Line that libsvm-official writes to the standard error also in quiet mode.
STEPS_USED_UP = b"WARNING: reaching max number of iterations"


@contextmanager
def _without_line() -> Iterator[None]:
    """Leave STEPS_USED_UP out of the standard error of the process; other output is kept."""
    with suppress(ValueError, AttributeError):  # stderr may be closed or missing
        sys.stderr.flush()
    try:
        terminal = os.dup(2)
    except OSError:
        yield
        return
    with tempfile.TemporaryFile() as written, os.fdopen(terminal, "wb", buffering=0) as shown:
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(terminal, 2)
            written.seek(0)
            if rest := re.sub(rb"\n?" + STEPS_USED_UP + rb"\n?", b"", written.read()):
                with suppress(OSError):
                    shown.write(rest)


WITHOUT_LINE = Shared(_without_line)


@memory_of("liblinear")
def solve_liblinear(
    problem: PiecewiseQP, X: Any, y: NDArray, C: float | NDArray, tol: float
) -> PiecewiseSolution:
    """Solve the linear SVM with scikit-learn's LinearSVC, which adds ``b^2 / 2`` to the objective.

    LinearSVC returns no multipliers. The lower bound is therefore computed from guessed
    multipliers: C for rows with slack, and 0 for all other rows. This lower bound is far below the
    optimum.
    """
    from sklearn.svm import LinearSVC

    model = LinearSVC(C=1.0, loss="hinge", tol=tol, max_iter=LIBLINEAR_PASSES, random_state=0)
    with QUIET:  # the status replaces the warning
        model.fit(X, y, sample_weight=C * np.ones(len(y)))
    w, bias = model.coef_[0], float(model.intercept_[0])
    decision, passes = X @ w, int(model.n_iter_)
    status = Status.ITERATION_LIMIT if passes >= LIBLINEAR_PASSES else Status.OPTIMAL
    note_status(status)
    u = problem.feasible(np.where(y * (decision + bias) < 1, C * y, 0.0))
    return problem.solution(u, decision, bias, passes, status, weights=w, route="liblinear")


def _plain(gram: NDArray, y: NDArray, C: float, tol: float) -> tuple[NDArray, NDArray, float]:
    """Solve by libsvm-official; return the indices and dual variables of support vectors, and b."""
    from libsvm.svm import svm_parameter, svm_problem
    from libsvm.svmutil import svm_train

    options = f"-s 0 -t 4 -c {float(C)!r} -e {float(tol)!r} -m {CACHE_MB} -q"
    # libsvm expects row numbers, from 1, in the first column of a precomputed matrix. It is passed
    # as a sparse array with all entries: libsvm-official copies dense arrays entry by entry in
    # Python.
    n = len(gram)
    values = np.column_stack([np.arange(1.0, n + 1), gram])
    columns = np.tile(np.arange(n + 1, dtype=np.int32), n)
    rows = csr_matrix((values.ravel(), columns, np.arange(0, n * (n + 1) + 1, n + 1)))
    with openmp().limit(limits=1), WITHOUT_LINE:  # the certificate replaces the line
        model = svm_train(svm_problem(y, rows, isKernel=True), svm_parameter(options))
    # the positive class of libsvm is the class of the first row
    sign = float(model.get_labels()[0])
    coef = sign * np.ravel(model.get_sv_coef())  # empty if no step exceeds a large tolerance
    return np.array(model.get_sv_indices(), dtype=int) - 1, coef, -sign * model.rho[0]


@cache
def openmp() -> Any:
    """Return the controller of OpenMP threads; libsvm must be imported before the first call.

    libsvm evaluates kernels in several threads, which are useless for a precomputed kernel. On a
    busy computer, a training with several threads takes one second, and with one thread 4 ms.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="openmp")


def _weighted(gram: NDArray, y: NDArray, C: NDArray, tol: float) -> tuple[NDArray, NDArray, float]:
    """Solve by scikit-learn's copy of libsvm; see `_plain` for the returned values.

    `C` contains the penalty of each row.
    """
    from sklearn.svm import SVC

    # without a maximum number of iterations, scikit-learn's copy of libsvm never terminates if
    # rounding errors exceed the tolerance
    most = max(LEAST_STEP_LIMIT, 100 * len(y))
    # SVC draws a seed, which changes no result, from NumPy's global generator by default
    options: dict[str, Any] = {"cache_size": CACHE_MB, "max_iter": most, "random_state": 0}
    model = SVC(C=1.0, kernel="precomputed", tol=tol, **options)
    with QUIET:  # the certificate replaces the warning
        model.fit(gram, y, sample_weight=C)
    return model.support_, model.dual_coef_[0], float(model.intercept_[0])
