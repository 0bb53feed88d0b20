"""libsvm: the papers' solver and the reference of our SVM.

The package libsvm-official (the extra ``solvers``) has no weights of rows: scikit-learn's copy of
libsvm solves problems with weights, and all problems if the package is not installed.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mmbench.errors import Status, memory_of
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution

#: Megabytes for libsvm's own kernel cache.
CACHE_MB = 500


@memory_of("libsvm")
def solve_libsvm(
    problem: PiecewiseQP, y: NDArray, C: float | NDArray, tol: float = 1e-5
) -> PiecewiseSolution:
    """Solve the dual of the SVM from its Gram matrix.

    Parameters
    ----------
    problem : PiecewiseQP
        The dual, to which libsvm's answer is held; see `mmbench.machines.svm.svm_dual`.
    y : ndarray of shape (n,)
        -1.0 or +1.0.
    C : float or ndarray of shape (n,)
        The penalty on slack, or that of each row.
    tol : float, default=1e-5
        libsvm's `eps`.

    Returns
    -------
    PiecewiseSolution
        libsvm tells neither its iterations (0 here) nor whether it gave up: its certificate, with u
        made feasible and ``Ku`` recomputed, does.
    """
    if isinstance(C, np.ndarray) or find_spec("libsvm") is None:
        support, coef, bias = _weighted(problem.values, y, C * np.ones(len(y)), tol)
    else:
        support, coef, bias = _plain(problem.values, y, C, tol)
    u = np.zeros(len(y))
    u[support] = coef
    u = problem.feasible(u)
    return problem.solution(u, problem.values @ u, bias, 0, Status.OPTIMAL, route="libsvm")


def _plain(gram: NDArray, y: NDArray, C: float, tol: float) -> tuple[NDArray, NDArray, float]:
    """Return the support, its u and the bias."""
    from libsvm.svm import svm_parameter, svm_problem
    from libsvm.svmutil import svm_train

    options = f"-s 0 -t 4 -c {float(C)!r} -e {float(tol)!r} -m {CACHE_MB} -q"
    rows = _numbered_rows(gram)
    with openmp().limit(limits=1):
        model = svm_train(svm_problem(y, rows, isKernel=True), svm_parameter(options))
    # the class that libsvm met first is its positive one
    sign = float(model.get_labels()[0])
    coef = sign * np.array(model.get_sv_coef())[:, 0]
    return np.array(model.get_sv_indices()) - 1, coef, -sign * model.rho[0]


@cache
def openmp() -> Any:
    """Return the controller of OpenMP, once libsvm is imported.

    libsvm's threads share out the evaluations of a kernel. Of a given matrix there are none, and
    threads that wait for one another on a busy computer take a second where one takes 4 ms.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="openmp")


def _weighted(gram: NDArray, y: NDArray, C: NDArray, tol: float) -> tuple[NDArray, NDArray, float]:
    """Return the same where each row has a penalty of its own."""
    from sklearn.svm import SVC

    model = SVC(C=1.0, kernel="precomputed", tol=tol, cache_size=CACHE_MB)
    model.fit(gram, y, sample_weight=C)
    return model.support_, model.dual_coef_[0], float(model.intercept_[0])


def _numbered_rows(gram: NDArray) -> csr_matrix:
    """Return libsvm's form of a given kernel: the number of each row, from 1, then its values.

    The matrix is sparse in type only, with its zeros stored: libsvm's package copies this type in
    compiled code and dense arrays element by element in Python.
    """
    n = len(gram)
    values = np.column_stack([np.arange(1.0, n + 1), gram])
    columns = np.tile(np.arange(n + 1, dtype=np.int32), n)
    return csr_matrix((values.ravel(), columns, np.arange(0, n * (n + 1) + 1, n + 1)))
