"""Optimisation: thin adapters around public solvers, and our own fast routes.

One file a solver. An adapter takes the arrays of a problem and returns a small result whose
feasibility and gap were recomputed here; a native status never reaches a caller untranslated.
"""
