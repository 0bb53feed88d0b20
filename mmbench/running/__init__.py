"""Execute jobs: worker processes, scheduling, limits and progress."""
