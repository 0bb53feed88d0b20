"""Optimisation: thin adapters around public solvers, and fast solvers of this package.

There is one file per solver. An adapter takes the arrays of a problem and returns a small result.
Its feasibility and gap are recomputed from the arrays, and its status is translated to `Status`.
"""
