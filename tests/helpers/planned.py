"""The committed experiments and their jobs, each planned once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mmbench.config import read
from mmbench.config.model import Config
from mmbench.config.plan import plan
from mmbench.jobs.job import Job
from mmbench.resources import CONFIGS

NO_STORE = Path("no-such-store")


def config_names() -> list[str]:
    """Return the names of the committed experiments."""
    return sorted(path.stem for path in CONFIGS.glob("*.yaml"))


@cache
def load(name: str) -> Config:
    """Return a committed experiment."""
    return read.load_config(CONFIGS / f"{name}.yaml")


@cache
def full_plan(name: str) -> list[Job]:
    """Return the jobs of a committed experiment."""
    return plan(load(name), NO_STORE, None, allow_network=False)
