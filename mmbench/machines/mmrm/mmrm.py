"""The max-margin ratio machine: a large margin relative to the distance of the class means.

    min over w, b, xi, eta   w'(x̄ - ȳ) + C (sum_i xi_i + sum_j eta_j)                       (28)
    subject to               w'x_i + b >= 1 - xi_i,  -(w'y_j + b) >= 1 - eta_j,  xi, eta >= 0

(Gu, Guo; ACML 2012.) The positive rows x_i have the mean x̄, the negative rows y_j the mean ȳ. The
kernel machine, (29) and (30), has ``w = sum_k alpha_k phi(x_k) - sum_l beta_l phi(y_l)`` with
alpha, beta >= 0, and a limit on their sum (notes of `MMRM`). Both are linear programs. "auto" takes
the first route whose condition holds; the warm start of a kernel program is the solution for
another C, or of an SVM.

    Fit.route   when                                        cost, for n rows and d features
    reused      the solution with the last C has no slack,  two matrix-vector products
                and is optimal with the new C
    features    linear, 200 rows or more                    n d^2 per iteration, 10 to 25
    highs       linear, fewer rows, or "features" failed    simplex pivots
    interior    kernel, over 100 rows, at most half of      m^3 per iteration, 3 to 6 rounds of
                them (m) near the margin of the warm start  10 to 20 iterations
    whole       other kernel programs                       n^3 per iteration; n r^2 at low rank r

If "interior" fails, "whole" is tried, and vice versa, then "highs"; above 4000 rows not "highs",
and "whole" only with a low rank. If all fail, the lowest objective and the highest bound are
returned. Times: `benchmarks/peers.py`, `benchmarks/routes.py`; gaps: `benchmarks/mmrm_grid.py`.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.kernels.matrix import KernelMatrix
from mmbench.machines.base.estimator import WeightedClassifier, slack_penalties
from mmbench.machines.base.one_vs_one import PairModels, PairPlan
from mmbench.machines.base.parameters import Param, choice, parameter, positive
from mmbench.machines.base.problem import STORED_ROWS, BinaryModel, BinaryProblem, Fit
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.mmrm.certificate import (
    CONSTANT_DECISION_RANGE,
    CertifiedSolution,
    best,
    certify,
    constant_solution,
    recertified,
    trivial_if_constant,
)
from mmbench.machines.mmrm.interior import WHOLE_ROWS
from mmbench.machines.mmrm.linear import solve_linear
from mmbench.machines.mmrm.program import (
    COEFFICIENT_LIMIT,
    Guess,
    KernelProgram,
    LinearProgram,
    without_repeats,
)
from mmbench.machines.mmrm.rounds import RestrictedProgram
from mmbench.machines.mmrm.vertex import solve_reference
from mmbench.machines.mmrm.whole import solve_whole
from mmbench.machines.svm import ROWS_PER_FEATURE, WHOLE_GRAM, svm_dual
from mmbench.memory import REFERENCE_GRAMS, TrainingSize, allowed_bytes, available_bytes

#: The route "interior" is tried before "whole" if there are more than MANY_ROWS rows, and at most
#: half of the rows are near the margin of the warm start.
MANY_ROWS = 100

#: KKT tolerance of the SVM whose solution is the warm start of a kernel program.
GUESS_TOLERANCE = 1e-2

#: Memory of the interior-point method for which `bytes_needed` allows, in bytes.
PROGRAM_BYTES = 1.8e9

#: Maximum size of a stored kernel matrix in bytes, about the size for 13,000 rows.
MOST_GRAM_BYTES = 1.4e9

#: Penalties on slack must lie between MIN_COST and MAX_COST. For other penalties, products of
#: penalties and margins lose all digits.
MIN_COST, MAX_COST = 1e-100, 1e100

#: Range of the coefficient limit. With a smaller limit, the decision values would be constant up to
#: CONSTANT_DECISION_RANGE. A larger limit increases the rounding errors of the lower bound.
LEAST_LIMIT, LARGEST_LIMIT = 1e-6, 1e100

#: The dispersion of the decision values within the classes is considered zero if it is at most
#: NO_DISPERSION times the range of the decision values.
NO_DISPERSION = 1e-9

#: A pair of classes is considered separable if the sum of the slacks is at most SEPARABLE_SLACK.
SEPARABLE_SLACK = 1e-6


class MMRM(WeightedClassifier):
    """Max-margin ratio machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair of classes. `objective` is the objective value of problem (28)
        for a linear kernel, and of (30) for other kernels. `bound` is a lower bound on the optimal
        value subject to the coefficient limit (see Notes). ``extra`` has the entries
        "margin_ratio", "separable" (True if all slacks are zero) and, for ``rbf`` and ``poly``,
        "at_coefficient_limit" (see Notes).
    margin_ratios_ : ndarray of shape (n_pairs,)
        Margin ratio rho of each pair of classes on the training rows. The margin ratio is negative
        if the projections of the classes overlap.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients alpha and -beta of each pair of classes (``rbf``, ``poly``).

    Notes
    -----
    In the descriptions of the parameters, n_x and n_y are the sums of the sample weights of the two
    classes, and ``n = n_x + n_y``.

    A machine with the status "unbounded" or "trivial" predicts the same class for every row: the
    class with the larger sum of slack penalties, or the larger class if the two sums are equal. The
    statuses "unbounded" and "trivial" describe the optimisation problem, not a failure of the
    solver. The status is "unbounded" if C is so small that the program has no minimum. The status
    of a kernel machine is "unbounded" if some coefficients within the coefficient limit (see below)
    have a negative objective value. The status is "trivial" if w = 0 is optimal. If the classes
    have different sizes, w = 0 is optimal for a range of C. If the mean of the smaller class lies
    among the points of the larger class, w = 0 may be optimal for every C.
    ``class_weight="balanced"`` avoids the status "trivial" for classes of different sizes.

    If the kernel is smooth and features are few, the Gram matrix may be singular in double
    precision. Then problem (30) has no solution in double precision: coefficients of 1e12 and more
    still lower the objective, since these coefficients fit rounding errors of the kernel values.
    The kernel machine therefore solves problem (30) with the coefficient limit::

        (sum_k alpha_k + sum_l beta_l) |mean_i k(x_i, x_i)| <= coefficient_limit.

    If ``fits_[i].extra["at_coefficient_limit"]`` is False, the solution is also certified for
    problem (30) without the limit. If ``fits_[i].extra["at_coefficient_limit"]`` is True, a larger
    limit lowers the objective value. The default coefficient limit, 2^20, was chosen for numerical
    precision, not for classification accuracy. If the largest violation of a dual constraint is v,
    `bound` is lowered by v times the coefficient limit. With the default limit, rounding errors
    lower `bound` by about 1e-10 times the objective value.

    If a pair of classes has no more rows than features, problem (28) has many solutions: weights
    that differ only orthogonally to the centred rows have the same decision values on all rows.
    The returned w has the least norm of them. It is a combination of the centred rows, and does
    not depend on the solver. The features of program (28) are then the principal components. If
    the standard deviations of the features, or of the components, differ by more than a factor of
    1e8, the features are kept, and any of the solutions is returned.

    The program (28) of the linear machine has no coefficient limit. However, `bound` is a lower
    bound only on the objective values of weights w with
    ``sum_k |w_k| sigma_k <= coefficient_limit``, where sigma_k is the standard deviation of feature
    k. If the returned w has a larger sum, the limit in this condition is replaced by the sum. If
    features are nearly equal, the features of program (28) are replaced by their principal
    components, scaled to standard deviation 1. The coefficient limit then applies to the weights of
    the scaled principal components. Principal components are omitted if their standard deviation
    before scaling is at most 1e-8 times the largest standard deviation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import MMRM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = MMRM(C=10, gamma=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.92
    >>> machine.margin_ratios_.round(2)
    array([ 4.  , 11.53,  0.21])
    """

    search_space: ClassVar[SearchSpace] = WeightedClassifier.search_space.extended(
        {"C": ("C_factor", (1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0))},
        prefer={"C": "small", "C_factor": "small", "gamma": "small", "degree": "small"},
        single_precision=False,  # float32 is too inaccurate for sums of terms of magnitude 1e6
    )
    version: ClassVar[int] = 6
    #: poly and rbf: the kernel values of more than 3000 rows are computed by NumPy. linear: the w
    #: of least norm is returned.
    kernel_versions: ClassVar[Mapping[str, int]] = {"linear": 1, "poly": 1, "rbf": 1}
    sparse_input = translation_invariant = True
    convex_on_any_matrix = True  # the problem is a linear program for any kernel matrix

    C: float | None = parameter(
        None,
        positive(optional=True),
        "Penalty on slack. Below ``max(1/n_x, 1/n_y)`` the program may be unbounded.",
    )
    C_factor: float = parameter(
        10.0,
        positive(useless_to=1.0),
        "If `C` is not given, C is `C_factor` times ``max(1/n_x, 1/n_y)``.",
    )
    class_weight: dict | str | None = parameter(
        None,
        Param(numeric=False, choices=("balanced",), optional=True, mapping=True),
        '"balanced" makes the penalty on slack inversely proportional to the size of the class: '
        '``C n / (2 n_class)``, or ``C_factor / n_class``. Without "balanced", a small class may '
        "be ignored, see Notes. A dict has factors of the penalties of some classes.",
        after="degree",
    )
    bias: str = parameter(
        "lp",
        choice("lp", "ratio"),
        'Rule for b: "lp" is the b of the linear program, with margins +-1; "ratio" is, for '
        "separable pairs, the b of (22), with equal ratios of margin to dispersion.",
        after="degree",
    )
    solver: str = parameter(
        "auto",
        choice("auto", "interior", "reference", "highs_ipm", "clarabel", "ecos"),
        'The whole program is solved by HiGHS with the simplex method ("reference") or its '
        'interior point ("highs_ipm"), by Clarabel or by ECOS. "interior" solves restricted '
        "programs of a kernel machine by an interior point and an exact vertex, and adds violated "
        "rows and columns until the whole program is solved.",
    )
    tol: float = parameter(
        1e-6, positive(), "Maximum relative gap and violation of an optimal solution."
    )
    coefficient_limit: float = parameter(
        COEFFICIENT_LIMIT,
        Param(low=LEAST_LIMIT, high=LARGEST_LIMIT),
        "Upper limit on the sum of the coefficients, multiplied by the mean of ``k(x, x)``. With "
        "limits of 2^26 and more, some programs cannot be solved to a gap of 1e-6.",
        after="tol",
    )

    def bytes_needed(self, size: TrainingSize) -> float:
        if self._in_features(size, ROWS_PER_FEATURE) and self.solver not in WHOLE_GRAM:
            return size.rows(2) + size.covariances(3)
        # PROGRAM_BYTES suffices for an interior point of 6000 rows and 6000 coefficients. On the
        # 60,000 rows of MNIST, restricted programs have at most 5000 of each. Above, the free
        # memory is checked before a program is solved.
        program = 8 * max(12 * min(size.n, WHOLE_ROWS) ** 2, 5 * size.n**2)
        matrix = (
            size.grams(REFERENCE_GRAMS)
            if self.solver in WHOLE_GRAM
            else size.in_parts(size.grams(1), None)
        )
        wide = self.kernel == "linear" and size.n <= size.d
        return matrix + min(PROGRAM_BYTES, program) + (size.covariances(4) if wide else 0.0)

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        gram = None if self.kernel == "linear" else _gram(problem)
        started = time.perf_counter()
        cost = slack_costs(problem, self.C, self.C_factor, self.class_weight)
        limit, weights = self.coefficient_limit, problem.weights
        program: LinearProgram | KernelProgram
        if gram is None:
            program = LinearProgram(problem.X, problem.y, cost, limit, weights)
        else:
            cost = without_repeats(problem.X, problem.y, cost)
            program = KernelProgram(gram, problem.y, cost, limit, weights)
        solution = self._solve(program, problem, None if warm is None else warm.state)
        solution = trivial_if_constant(program, solution)
        facts = margin_facts(program.y, solution.margins, problem.weights)
        b = solution.b
        if self.bias == "ratio" and facts["separable"]:
            b = ratio_bias(program.y, solution.margins, b, problem.weights)
        limited = program.nonnegative and solution.limited(program, self.tol)
        at_limit = {"at_coefficient_limit": limited} if program.nonnegative else {}
        fit = Fit.of(
            solution,
            max_violation=0.0 if limited else solution.violation,
            seconds=time.perf_counter() - started,
            n_support=int(np.count_nonzero(solution.u if program.nonnegative else solution.lam)),
            extra={**facts, **solution.facts, **at_limit},
        )
        if isinstance(program, LinearProgram):
            w, b = program.weights(solution.u, b)
            return BinaryModel(intercept=b, fit=fit, w=w, state=solution)
        coef = program.coefficients(solution.u)
        return BinaryModel(intercept=b, fit=fit, coef=coef, state=solution)

    def _solve(
        self,
        program: LinearProgram | KernelProgram,
        problem: BinaryProblem,
        neighbour: CertifiedSolution | None,
    ) -> CertifiedSolution:
        reused = None if neighbour is None else recertified(program, neighbour, self.tol)
        if reused is not None:
            return reused
        if isinstance(program, LinearProgram):
            return solve_linear(program, self.tol, self.solver)
        if self.solver in ("auto", "interior"):
            guess = _guess(program, problem, neighbour)
            found = solve_kernel(program, guess, self.solver, self.tol)
        else:
            found = solve_reference(program, self.tol, self.solver)
        if found.value < -self.tol:
            # without the coefficient limit, multiples of the solution have arbitrarily low
            # objective values
            return constant_solution(program, Status.UNBOUNDED, found.route, found.iterations)
        return found

    def _store(self, plan: PairPlan, models: PairModels) -> None:
        super()._store(plan, models)
        self.margin_ratios_ = np.array(
            [fit.extra.get("margin_ratio", np.nan) for fit in self.fits_]
        )


def slack_costs(
    problem: BinaryProblem, C: float | None, C_factor: float, class_weight: Any = None
) -> NDArray:
    """Return the penalty on the slack of each row.

    If C is None, C is `C_factor` divided by the number of rows of the smaller class. If C is None
    and `class_weight` is "balanced", the slack penalty of a row is `C_factor` divided by the number
    of rows of its class. If rows have weights, the sum of the row weights of a class replaces the
    number of its rows.
    """
    if C is None:
        s = np.ones(len(problem.y)) if problem.weights is None else problem.weights
        sizes = [float(s[problem.y == sign].sum()) for sign in (-1.0, 1.0)]
        # if the class weight is "balanced", `slack_penalties` multiplies this C by n / (2 n_class)
        C = 2 * C_factor / sum(sizes) if class_weight == "balanced" else C_factor / min(sizes)
    cost = slack_penalties(problem, C, class_weight) * np.ones(len(problem.y))
    low, high = float(cost.min()), float(cost.max())
    if not MIN_COST <= low <= high <= MAX_COST:
        raise ValueError(
            f"MMRM: penalties on slack, C times a sample's weight, are {low:.2g} to {high:.2g}; "
            f"they must be {MIN_COST:g} to {MAX_COST:g}"
        )
    return cost


def margin_facts(y: NDArray, margins: NDArray, weights: NDArray | None = None) -> dict[str, Any]:
    """Return a dictionary: the margin ratio (20) of the classes, and whether all slacks are zero.

    The margin ratio is computed from decision values f instead of projections f - b, since b
    cancels. The margin ratio (20) is ``d_b / d_w`` with ``d_b = min f(x_i) - max f(y_j)`` (7) and
    ``d_w = mean f(x_i) - mean f(y_j) - d_b`` (17).
    """
    f = y * margins
    between = float(f[y > 0].min() - f[y < 0].max())
    x_mean, y_mean = class_means(f, y, weights)
    within = x_mean - y_mean - between
    spread = float(np.ptp(f))
    # if all rows have margin 1, `within` (d_w) is zero up to rounding errors
    ratio = between / within if within > NO_DISPERSION * spread else np.inf
    if spread <= CONSTANT_DECISION_RANGE:
        ratio = np.nan
    slack = float(np.maximum(1 - margins, 0).sum())
    return {"margin_ratio": ratio, "separable": slack <= SEPARABLE_SLACK}


def ratio_bias(y: NDArray, margins: NDArray, b: float, weights: NDArray | None = None) -> float:
    """Return the b of (22), with which both classes have the same ratio of margin to dispersion.

    Let ``p = f - b`` be the projections of the rows, with the decision values f and the intercept
    b. Let x* and y* be the positive and the negative row nearest to the other class, and x_mean and
    y_mean the class means. Then (22) is

        b = -p(y*) - (p(y*) - p(y_mean)) / (p(x_mean) - p(x*) + p(y*) - p(y_mean)) (p(x*) - p(y*))
    """
    p = y * margins - b
    lowest, highest = float(p[y > 0].min()), float(p[y < 0].max())
    x_mean, y_mean = class_means(p, y, weights)
    spread_x, spread_y = x_mean - lowest, highest - y_mean
    spread = spread_x + spread_y
    # if all rows have margin 1, both dispersions are rounding errors
    share = spread_y / spread if spread > NO_DISPERSION * float(np.ptp(p)) else 0.5
    return -highest - share * (lowest - highest)


def class_means(f: NDArray, y: NDArray, weights: NDArray | None) -> tuple[float, float]:
    """Return the weighted means of the values f over the positive and over the negative class."""
    s = np.ones(len(y)) if weights is None else weights
    positive, negative = (float(np.average(f[side], weights=s[side])) for side in (y > 0, y < 0))
    return positive, negative


def _gram(problem: BinaryProblem) -> NDArray | KernelMatrix:
    """Return the kernel matrix, either stored or computed in blocks at each use.

    A kernel matrix of more than STORED_ROWS rows is stored if its size is at most the smallest of
    MOST_GRAM_BYTES, half of the free memory, and half of the allowed memory.
    """
    n = len(problem.y)
    most = min(MOST_GRAM_BYTES, available_bytes() / 2, allowed_bytes() / 2)
    # without a stored kernel matrix, training takes up to twice as long
    stored = problem.given_gram is not None or n <= STORED_ROWS or 8 * n**2 <= most
    return problem.gram if stored else problem.blocks(None)


def _guess(
    program: KernelProgram, problem: BinaryProblem, neighbour: CertifiedSolution | None
) -> Guess:
    """Return the warm start of a kernel program.

    The warm start is `neighbour` (the solution of an MMRM with another C) if its coefficients are
    not all zero, and otherwise the solution of an SVM with the same slack penalties.
    """
    if neighbour is not None and neighbour.u.any():
        return Guess(neighbour.u, neighbour.margins)
    from mmbench.solvers.svm_dual.smo import solve_smo

    # The SVM and the MMRM have nearly the same support vectors. Very small slack penalties are
    # raised, since they would make all rows support vectors of the SVM.
    cost = np.where(program.cost > 0, np.maximum(program.cost, 1 / program.scale), 0.0)
    svm = solve_smo(svm_dual(program.gram, problem.y, cost), tol=GUESS_TOLERANCE)
    return Guess(np.abs(svm.u), problem.y * (svm.decision + svm.bias))


def solve_kernel(
    program: KernelProgram, guess: Guess, solver: str, tol: float
) -> CertifiedSolution:
    """Solve (30) by the first route that reaches the tolerance or a negative objective value."""
    solutions: list[CertifiedSolution] = []
    for route in _routes(program, guess, solver):
        if time_is_up():
            break
        if route == "whole":
            solution = solve_whole(program, guess, tol)
        elif route == "interior":
            solution = RestrictedProgram(program, guess, tol).solve()
        else:
            solution = solve_reference(program, tol)
        if solution.status is Status.OPTIMAL or solution.value < -tol:
            return solution
        solutions.append(solution)
    if time_is_up():
        b = float(program.y[0] * (guess.margins[0] - program.forward(guess.u)[0]))
        lam = np.zeros(len(program.y))
        solutions.append(certify(program, guess.u, b, lam, tol, 0, "warm start"))
    return best(program, solutions, tol)


def _routes(program: KernelProgram, guess: Guess, solver: str) -> Iterator[str]:
    """Yield the names of the routes of a kernel program, in the order of the attempts."""
    n, near = len(program.rows), len(guess.near_rows(program))
    few = n <= WHOLE_ROWS
    restricted_first = solver == "interior" or (n > MANY_ROWS and 2 * near <= n)
    if restricted_first:
        yield "interior"
    if few or program.factor is not None:
        yield "whole"
    if not restricted_first:
        yield "interior"
    if few and solver == "auto":
        yield "highs"
