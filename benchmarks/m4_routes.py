"""The soft M4's default route against cone programs, on real two-class sets.

    python benchmarks/m4_routes.py --mirror FOLDER [--data heart pima ionosphere] [--kernel rbf]
                                   [--cap 300]

Three references, in CPU seconds of one thread, all in the coordinates that the default uses (they
make the cones diagonal, which spares the references most of their work):

    printed   the paper's route: search over rho by interpolation, one cone a point, ECOS.
              Its normalisation is w'(xm - ym) = 1. The default runs at the C at which
              both weigh margin and slack alike there, and the value compared is the default's
              objective, ``sx + sy + C sum xi``, at the best b and multiple of each w. A search
              that takes longer than the cap ends after the cone program it is at: its best rho so
              far counts, and its time is a lower bound
    search    the default's own objective, searched over rho (``solver="reference"``, Clarabel)
    single    the default's objective as one cone program (``solver="clarabel"``)

Prints seconds, ratios to the default, and the relative excess of each objective over the default's.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar
from threadpoolctl import threadpool_limits

from mmbench.datasets import load_dataset, make_preprocess
from mmbench.kernels import Kernel
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.minimax.cones import fixed_program, solve_spread
from mmbench.machines.minimax.coordinates import KernelCoordinates, LinearCoordinates
from mmbench.machines.minimax.mean import least_penalty
from mmbench.machines.minimax.problem import MarginProblem
from mmbench.machines.minimax.soft import solve_soft
from mmbench.machines.minimax.spread import minimax_direction

RIDGE = {"linear": 1e-6, "rbf": 1e-3}
#: Multiples of the least useful C.
FACTOR = 2.0


def read(mirror, name, kernel):
    """Return the set's problem in diagonal coordinates, with C = 1."""
    data = load_dataset(name, store="datasets", mirror=mirror, allow_network=False)
    X = make_preprocess((("minmax", None),)).fit_transform(data.X)
    y = np.where(data.y == np.unique(data.y)[1], 1.0, -1.0)
    coordinates = LinearCoordinates if kernel == "linear" else KernelCoordinates
    problem = BinaryProblem(X, y, Kernel(kernel, gamma=1.0))
    data = coordinates(problem).diagonal(RIDGE[kernel])
    return MarginProblem(data.rows, y, data.delta, data.var_x, data.var_y, C=1.0)


def at_penalty(problem, C):
    """Return the problem at another C."""
    return MarginProblem(problem.rows, problem.y, problem.delta, problem.var_x, problem.var_y, C)


class OutOfTime(Exception):
    """A reference has had its time."""


def printed(problem, penalty, cap):
    """Return CPU seconds, the number of cone programs, rho, w, and whether the search ended."""
    kappa = 1 / minimax_direction(problem.delta, problem.var_x, problem.var_y).value
    values, directions = {}, {}

    def criterion(rho):
        if values and time.process_time() - started > cap:
            raise OutOfTime
        program = fixed_program(problem, rho)
        x = solve_spread(program, "ecos", 1e-8, cone_a_row=True).x
        values[rho], directions[rho] = penalty * program.value(x) - rho, x[: len(problem.delta)]
        return values[rho]

    started = time.process_time()
    try:
        options = {"xatol": 1e-4 * kappa}
        minimize_scalar(criterion, bounds=(0.0, kappa), method="bounded", options=options)
        ended = True
    except OutOfTime:
        ended = False
    rho = min(values, key=values.get)
    seconds = time.process_time() - started
    return seconds, len(values), rho, directions[rho], ended


def timed(problem, solver, repeats=1):
    """Return CPU seconds of a route and its solution; the first call is not counted for many."""
    if repeats > 1:
        solve_soft(problem, solver)
    started = time.process_time()
    for _ in range(repeats):
        found = solve_soft(problem, solver)
    return (time.process_time() - started) / repeats, found


def line(name, seconds, fast_seconds, value, fast_value, note="", ended=True):
    excess = (value - fast_value) / fast_value
    least = "  " if ended else ">="
    print(
        f"    {name:8} {least} {seconds:9.4f} s   ratio {least} {seconds / fast_seconds:8.1f}   "
        f"objective {value:.8f}   excess {excess:+.1e}   {note}",
        flush=True,
    )


def report(problem, name, kernel, routes, cap):
    """Run the default and the references on one set."""
    print(f"{name} {kernel}, {problem.rows.shape[0]} rows, {problem.rows.shape[1]} coordinates")
    penalty = FACTOR * least_penalty(problem)
    if "printed" in routes:
        seconds, programs, rho, w, ended = printed(problem, penalty, cap)
        equal = at_penalty(problem, penalty * problem.spreads(w / (problem.delta @ w)).sum() / rho)
        fast_seconds, fast = timed(equal, "auto", 10)
        value = equal.value(*equal.tuned(w))
        note = f"{programs} programs" if ended else f"{programs} programs, not at its end"
        line("printed", seconds, fast_seconds, value, fast.value, note, ended)
    else:
        # The least useful C of the default's normalisation is 1/(kappa n), not kappa/n.
        spread = minimax_direction(problem.delta, problem.var_x, problem.var_y).value
        equal = at_penalty(problem, penalty * spread**2)
        fast_seconds, fast = timed(equal, "auto", 10)
    for route, solver in (("search", "reference"), ("single", "clarabel")):
        if route in routes:
            seconds, found = timed(equal, solver)
            line(route, seconds, fast_seconds, found.value, fast.value)
    line("default", fast_seconds, fast_seconds, fast.value, fast.value, f"gap {fast.gap:.0e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--data", nargs="+", default=["heart", "pima", "ionosphere"])
    parser.add_argument("--kernel", nargs="+", default=["linear", "rbf"])
    parser.add_argument("--cap", type=float, default=300.0, help="CPU seconds of a printed search")
    parser.add_argument("--routes", nargs="+", default=["printed", "search", "single"])
    options = parser.parse_args()
    with threadpool_limits(1):
        for kernel in options.kernel:
            load = partial(read, options.mirror, kernel=kernel)
            for name in options.data:
                report(load(name), name, kernel, options.routes, options.cap)


if __name__ == "__main__":
    main()
