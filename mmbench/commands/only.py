"""``--only dataset=usps --only machine=rmm``: a part of an experiment's jobs."""

from collections.abc import Iterable, Sequence

from mmbench.config.model import Config
from mmbench.errors import UserError, did_you_mean
from mmbench.jobs.job import Job

FIELDS = ("dataset", "machine")


def parse_only(options: Iterable[str], configs: Sequence[Config]) -> dict[str, set[str]]:
    """Return the wanted names by field; a name must occur in one of the experiments.

    Raises
    ------
    UserError
        If an option is not ``dataset=NAME`` or ``machine=NAME`` of these experiments.
    """
    known = {
        "dataset": {entry.label for config in configs for entry in config.datasets},
        "machine": {name for config in configs for name in config.machines},
    }
    wanted: dict[str, set[str]] = {}
    for option in options:
        field, equals, name = option.partition("=")
        if field not in FIELDS or not equals:
            raise UserError(f"--only {option}: must be dataset=NAME or machine=NAME")
        if name not in known[field]:
            hint = did_you_mean(name, known[field])
            raise UserError(f"--only {option}: no such {field} in the experiment{hint}")
        wanted.setdefault(field, set()).add(name)
    return wanted


def keep_only(jobs: Sequence[Job], wanted: dict[str, set[str]]) -> list[Job]:
    """Return the wanted jobs and, with them, every job whose selection they inherit."""
    kept = {
        job.key
        for job in jobs
        if job.dataset.name in wanted.get("dataset", {job.dataset.name})
        and job.column in wanted.get("machine", {job.column})
    }
    return keep_keys(jobs, kept)


def keep_keys(jobs: Sequence[Job], keys: Iterable[str]) -> list[Job]:
    """Return the jobs of some keys and, with them, every job whose selection they inherit."""
    kept = set(keys)
    for job in reversed(jobs):  # parents come first, so every child is seen before its parent
        if job.key in kept:
            kept.update(job.parents)
    return [job for job in jobs if job.key in kept]
