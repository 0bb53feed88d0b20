"""Solvers of optimisation problems: adapters for public solvers, and solvers of this package.

There is one module per solver. An adapter passes the arrays of a problem to a public solver and
returns a `Result`. The feasibility and the duality gap of a `Result` are recomputed from the arrays
of the problem. The status reported by a public solver is translated to `Status`.
"""
