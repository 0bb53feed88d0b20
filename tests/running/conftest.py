"""Jobs on data inside scikit-learn, and a folder for their records."""

from helpers.small_run_fixtures import context, job, jobs, other_store, store  # noqa: F401
