"""What the README of the experiments says of their time and memory."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pytest
from helpers.planned import config_names, full_plan

from mmbench import memory
from mmbench.commands.dry_run import reference_seconds, sizes_of
from mmbench.config.read import load_config
from mmbench.jobs.planned import key_of
from mmbench.resources import CONFIGS, REFERENCE
from mmbench.results.splits import SECONDS
from mmbench.running.forecast import estimate_bytes

LINE = re.compile(r"\| `(\w+)` \| (\d+) \| (?:(\d+) (min|s)|not yet run) \| ([\d.]+) GiB \|")
SETS = re.compile(r"\| (nightly|weekly|monthly) \| ([\d.]+) CPU hours")
#: Experiments that were not yet run in full.
NOT_RUN = {"ldm_table"}
COSTS = {name: rest for name, *rest in LINE.findall((CONFIGS / "README.md").read_text())}


def test_every_experiment_has_a_line():
    assert list(COSTS) == config_names()


@pytest.mark.parametrize("name", config_names())
def test_lines_are_what_a_dry_run_estimates(name: str, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**40)  # lack of it is no cost
    n_jobs, time, unit, stated_memory = COSTS[name]
    jobs = full_plan(name)
    assert len(jobs) == int(n_jobs)
    largest = {(job.dataset, job.kernel, job.degree, job.column): job for job in jobs}.values()
    most = max(estimate_bytes(job, sizes_of(job), 2) for job in largest) / 2**30
    assert float(stated_memory) == pytest.approx(most, abs=0.06, rel=0.03)
    seconds = reference_seconds(REFERENCE / name)
    if not seconds:
        assert name in NOT_RUN
        return
    minutes = sum(seconds.get(key_of(job), 0.0) for job in jobs) / 2 / 60
    stated = int(time) if unit == "min" else int(time) / 60
    assert minutes == pytest.approx(stated, rel=0.25)


def test_times_of_other_packages_classifiers_have_the_kernel_of_the_plan():
    places = {(key.machine, key.kernel) for key in reference_seconds(REFERENCE / "verdict")}
    assert {("logistic", "linear"), ("forest", "rbf")} <= places
    assert ("forest", "linear") not in places


def cpu_hours(experiment: str, splits: int | None = None, machines: Iterable[str] = ()) -> float:
    """Return the CPU hours of an experiment, or of its first splits and some of its machines."""
    if experiment in NOT_RUN:
        return 0.0
    table = pd.read_csv(REFERENCE / experiment / "table.csv")
    table = table[table.machine.isin(machines)] if machines else table
    times = table[table.metric.isin(SECONDS)]
    return float((times.measured * times.n.clip(upper=splits)).sum() / 3600)


@pytest.mark.parametrize(("name", "most"), [("nightly", 4), ("weekly", 14), ("monthly", 32)])
def test_the_sets_that_run_by_themselves_take_what_is_said(name: str, most: float):
    reproduce = CONFIGS.parent / "scripts" / "reproduce"
    hours = 0.0
    for listed in json.loads(subprocess.check_output([reproduce, "--list", f"--{name}"])):
        hours += cpu_hours(listed)
        config = load_config(CONFIGS / f"{listed}.yaml")
        if (source := config.parameters_from) is not None:  # its jobs run first
            hours += cpu_hours(Path(source.experiment).stem, source.splits, config.machines)
    stated = dict(SETS.findall((CONFIGS / "README.md").read_text()))
    assert hours == pytest.approx(float(stated[name]), rel=0.1)
    assert hours < most
