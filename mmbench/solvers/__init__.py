"""Solvers of optimisation problems: adapters for public solvers, and solvers of this package.

Feasibility and gap are recomputed from the solution, never taken from a public solver.
"""
