"""Solvers of optimisation problems: adapters for public solvers, and solvers of this package.

One module per solver. An adapter passes arrays to a public solver, recomputes feasibility and gap
from them, translates the status to `Status`, and returns a `Result`.
"""
