"""Machines based on the class means and covariances (LDA, MPM, MEMPM, M4)."""
