"""Limits on jobs, from the file and from the command line; what the operating system limits."""

from __future__ import annotations

import pytest

from mmbench.commands.run import run
from mmbench.config.read import load_config, to_yaml
from mmbench.errors import UserError
from mmbench.jobs.limits import Limits

CONFIG = """
name: small
datasets: [wine]
protocol: {test: {holdout: 0.3}}
machines: {svm: {params: {C: 1}}}
"""


@pytest.fixture
def config(tmp_path):
    def write(line=""):
        path = tmp_path / "small.yaml"
        path.write_text(CONFIG + line)
        return path

    return write


def test_limits_of_the_file_survive_its_copy_beside_the_records(config, tmp_path):
    read = load_config(config("limits: {time: 1h, memory: 8 GB}"))
    assert read.limits.amounts == Limits(3600, 8e9)
    (tmp_path / "copy.yaml").write_text(to_yaml(read))
    assert load_config(tmp_path / "copy.yaml") == read


@pytest.mark.parametrize("wrong", ["{time: soon}", "{memory: 8}", "{time: 0}", "{cores: 2}"])
def test_other_limits_are_the_users_to_mend(wrong, config):
    with pytest.raises(UserError, match=r"small\.yaml: limits"):
        load_config(config(f"limits: {wrong}"))


@pytest.mark.usefixtures("one_process")
def test_the_command_line_goes_before_the_file(config, tmp_path, monkeypatch):
    seen = []

    def stop(jobs, store, executor, *, limits, **_):
        seen.append(limits)
        raise UserError("enough")

    monkeypatch.setattr("mmbench.commands.experiments.run", stop)
    path = config("limits: {time: 1h, memory: 8 GB}")
    for limit in (None, "60s"):
        with pytest.raises(UserError, match="enough"):
            run(path, tmp_path / "results", store=tmp_path / "store", time_limit=limit)
    assert seen == [Limits(3600, 8e9), Limits(60, 8e9)]
