"""Optimisation: thin adapters around public solvers, and fast solvers of this package.

There is one file per solver. An adapter takes the arrays of a problem and returns a `Result`. The
feasibility and the gap of the result are recomputed from the arrays, and the native status is
translated to `Status`.
"""
