"""Columns that say which machine they are: the same machine may stand in a table twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmbench.commands.experiments import keep_only
from mmbench.config.model import Config
from mmbench.config.plan import plan, plan_of
from mmbench.config.read import load_config, to_yaml
from mmbench.config.smoke import smoke
from mmbench.jobs.job import Job
from mmbench.jobs.planned import key_of
from mmbench.jobs.train import make_machine, own_part

TWICE = """\
name: twice
datasets: [wine]
protocol: {test: {kfold: 2}}
machines:
  m4: {params: {C: 3, nu: 0.5}}
  wide: {machine: m4, use: m4, params: {nu: 0.8}, label: "M4, nu = 0.8"}
  m4_nu90: {use: m4}
  narrow: {machine: m4_nu70, use: wide, grid: {C: [1, 10]}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / "twice.yaml"
    path.write_text(TWICE)
    return load_config(path)


@pytest.fixture
def jobs(config: Config, tmp_path: Path) -> dict[str, Job]:
    planned = plan(config, tmp_path / "store", None, allow_network=False)
    return {job.column: job for job in planned if job.split.fold == 0}


def test_a_column_has_the_machine_and_the_parameters_that_it_says(jobs):
    assert list(jobs) == ["m4", "wide", "m4_nu90", "narrow"]
    assert [job.machine for job in jobs.values()] == ["m4", "m4", "m4_nu90", "m4_nu70"]
    built = {name: make_machine(job, 1, 0) for name, job in jobs.items()}
    assert [machine.nu for machine in built.values()] == [0.5, 0.8, 0.9, 0.7]
    assert [built[name].C for name in ("m4", "wide", "m4_nu90")] == [3, 3, 3]


def test_what_an_alias_fixes_is_not_inherited_from_a_selection(jobs):
    job = jobs["m4_nu90"]
    assert own_part(make_machine(job, 1, 0), job, [{"nu": 0.1, "C": 7.0}]) == [{}]
    assert own_part(make_machine(job, 1, 0), job, [{"nu": 0.1, "ridge": 7.0}]) == [{"ridge": 7.0}]


def test_columns_use_each_other_by_name(jobs):
    assert jobs["narrow"].use == "wide"
    assert jobs["narrow"].parent == jobs["wide"].key != jobs["m4"].key


def test_a_column_of_another_name_has_records_and_cells_of_its_own(jobs):
    assert len({job.key for job in jobs.values()}) == len(jobs)
    assert [key_of(job).machine for job in jobs.values()] == list(jobs)
    for job in jobs.values():
        assert Job.from_dict(job.to_dict()) == job


def test_columns_are_called_by_their_label_or_their_own_name(config, jobs):
    plan = plan_of(config)
    names = [plan.label(column) for column in config.machines]
    assert names == ["M4", "M4, nu = 0.8", "M4, ν = 0.9", "narrow"]


def test_only_and_smoke_and_yaml_go_by_columns(config, jobs, tmp_path):
    kept = keep_only(list(jobs.values()), {"machine": {"wide"}})
    assert [job.column for job in kept] == ["m4", "wide"]
    assert smoke(config).machines["narrow"].grid == {"C": (1, 10)}
    (tmp_path / "again.yaml").write_text(to_yaml(config))
    assert load_config(tmp_path / "again.yaml") == config
