"""Solvers of optimisation problems: adapters for public solvers, and solvers of this package.

There is one module per solver. An adapter passes the arrays of a problem to a public solver, and
returns a `Result`. The adapter recomputes feasibility and duality gap from these arrays, and
translates the status of the public solver to `Status`.
"""
