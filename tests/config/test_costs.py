"""What the README of the experiments says of their time and memory."""

from __future__ import annotations

import re

import pytest
from helpers.planned import config_names, full_plan

from mmbench.commands.times import Times
from mmbench.commands.workload import sizes_of
from mmbench.resources import CONFIGS
from mmbench.running.memory import estimate_bytes

LINE = re.compile(r"\| `(\w+)` \| (\d+) \| (\d+) (min|s) \| ([\d.]+) GiB \|")
COSTS = {name: rest for name, *rest in LINE.findall((CONFIGS / "README.md").read_text())}


def test_every_experiment_has_a_line():
    assert list(COSTS) == config_names()


@pytest.mark.parametrize("name", config_names())
def test_lines_are_what_a_dry_run_estimates(name: str, tmp_path):
    n_jobs, time, unit, memory = COSTS[name]
    jobs = full_plan(name)
    assert len(jobs) == int(n_jobs)
    largest = {(job.dataset, job.kernel, job.degree, job.column): job for job in jobs}.values()
    most = max(estimate_bytes(job, sizes_of(job), 2) for job in largest) / 2**30
    assert float(memory) == pytest.approx(most, abs=0.06, rel=0.03)
    times = Times(name, tmp_path / name)
    if times.seconds(jobs[0]) is not None:
        minutes = sum(times.seconds(job) or 0.0 for job in jobs) / 2 / 60
        stated = int(time) if unit == "min" else int(time) / 60
        assert 0.5 * stated < minutes < 1.6 * stated + 0.1
