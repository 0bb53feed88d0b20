"""The Sigma-SVM: an SVM that pays for the spread of its decisions as well as for its norm.

    min over w, b   (1-D)/2 ||w||^2 + D/2 ||Sigma^(1/2) w||^2 + C sum_i xi_i
    subject to      y_i (w'(phi(x_i) - mu) + b) >= 1 - xi_i,  xi_i >= 0                      (3)

with mu and Sigma the mean and the covariance (1/n) of all training rows, whatever their class. It
is the SVM with the kernel

    k_D(x, z) = (phi(x) - mu)' ((1-D) I + D Sigma)^-1 (phi(z) - mu).                         (4)

With weights s_i of the rows the penalty on xi_i is ``C s_i`` in (3), and mu and Sigma are weighted:
``Sigma = sum_i s_i (phi(x_i) - mu)(phi(x_i) - mu)' / sum_i s_i``. How it is trained is in
`mmbench.machines.sigma_svm.train`.

References
----------
P. K. Shivaswamy, T. Jebara: Relative margin machines. NIPS 21, 2008.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from mmbench.machines.base import kernel_scaling
from mmbench.machines.linear_route import ROWS_PER_FEATURE
from mmbench.machines.parameter import Param, choice, parameter, positive
from mmbench.machines.problem import BinaryModel, BinaryProblem
from mmbench.machines.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.sigma_svm.folds import shared_folds, train_folds
from mmbench.machines.sigma_svm.train import train_sigma_svm
from mmbench.machines.svm import SVM, tolerance
from mmbench.machines.weights import WeightedClassifier, class_weight, row_weights

#: Most of the effect lies near D = 1: variances are small numbers beside the 1 of the identity.
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)

#: Tolerance from which on a search rounds (4) to float32.
SINGLE_PRECISION_TOLERANCE = 1e-4


class SigmaSVM(WeightedClassifier):
    """SVM with a penalty on the spread of its decisions, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair. `objective` is (3) at the returned w and b, `bound` its dual
        at a feasible point, so the optimum lies between them. `n_support` counts the rows with a
        multiplier.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients of w over the training rows (``rbf``, ``poly``).
    support_, support_vectors_ : ndarray
        Rows with a non-zero coefficient: all, since each has a part in Sigma (``rbf``, ``poly``).
    intercept_ : ndarray of shape (n_pairs,)
        ``b - w'mu`` of each pair: ``f(x) = w'phi(x) + intercept``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import SigmaSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SigmaSVM(C=10, D=0.9, gamma=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.96
    >>> [str(fit.status) for fit in machine.fits_]
    ['optimal', 'optimal', 'optimal']
    """

    search_space: ClassVar[SearchSpace] = SVM.search_space.extended(
        {"D": ("D", SHARES)},
        prefer={**SVM.search_space.prefer, "D": "small"},
        # Near D = 1 directions of little variance are blown up, and the rounding of the matrix that
        # they are found in; that of (4) itself is not.
        single_precision=False,
    )
    # The matrix, centred, its vectors, and these scaled in two ways. In a search they are of the
    # rows of all folds, whose square is up to 16/9 of that of a fold's.
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(
        gram_copies=9,
        linear_gram_copies=3,
        linear_row_copies=2,
        rows_per_feature=ROWS_PER_FEATURE,
    )
    translation_invariant = True
    kernel_versions = SVM.kernel_versions
    gap_tolerance_factor = SVM.gap_tolerance_factor
    version: ClassVar[int] = 2

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")
    class_weight: dict | str | None = class_weight()
    D: float = parameter(
        0.5,
        Param(low=0, high=1),
        "From 0, the SVM on centred data, to 1, the SVM on whitened data. There Sigma is inverted "
        "where the training rows vary (with a kernel, by more than 1.5e-8 of the largest "
        "variance), and the machine is affinely invariant.",
    )
    kernel_scaling: str = kernel_scaling()
    solver: str = parameter(
        "auto",
        choice("auto", "smo", "reference"),
        '"smo" takes pairwise steps on the matrix of (4); "auto" does too, but for a linear kernel '
        "and many rows of few features, which an interior point solves without that matrix; "
        '"reference" is libsvm.',
    )
    tol: float = SVM.parameters["tol"]

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        weights, tol = row_weights(problem, self.class_weight), tolerance(self.tol, len(problem.y))
        penalties = [(self.D, self.C)]
        return train_sigma_svm(problem, penalties, self.solver, tol, weights=weights)[0]

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every point; one decomposition serves them all."""
        if any(set(point) - {"C", "D"} for point in points):
            return super().train_path(problem, points)
        single = self.tol >= SINGLE_PRECISION_TOLERANCE
        return train_sigma_svm(
            *(problem, self._penalties(points), self.solver, self.tol, single),
            row_weights(problem, self.class_weight),
        )

    def train_folds(
        self, problems: Iterable[BinaryProblem], points: Sequence[Mapping[str, Any]]
    ) -> Iterator[list[BinaryModel]]:
        """Train a path on every fold; one decomposition serves all folds of a search."""
        problems = list(problems)
        search = self.solver == "auto" and self.tol >= SINGLE_PRECISION_TOLERANCE
        parts = shared_folds(problems) if search and self.class_weight is None else None
        if parts is None or any(set(point) - {"C", "D"} for point in points):
            return super().train_folds(problems, points)
        return iter(train_folds(parts, self._penalties(points), self.tol))

    def _penalties(self, points: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
        """Return D and C at every point."""
        return [(point.get("D", self.D), point.get("C", self.C)) for point in points]
