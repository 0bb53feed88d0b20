"""The commands of the page on clusters exist, and its clusters start the workers that it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from typer.main import get_command

from mmbench.cli.app import app
from mmbench.config.read import load_configs

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")


def options_of(command):
    return {option for param in command.params for option in param.opts}


def commands(start):
    """Return the options of each line of the page that has a command."""
    lines = re.findall(rf"^    (?:ssh \w+ )?(?:\S*/)?({start}.*)$", PAGE, re.M)
    words = [shlex.split(line, comments=True) for line in lines]
    return [{word for word in line if word.startswith("--")} for line in words]


def test_the_options_of_mmbench_run_exist():
    known = options_of(get_command(app).commands["run"])
    lines = commands("mmbench run")
    assert any("--scheduler" in line for line in lines)
    assert set().union(*lines) <= known


@pytest.mark.parametrize("name", ["scheduler", "worker"])
def test_the_commands_of_dask_exist(name):
    pytest.importorskip("distributed")
    from importlib.metadata import entry_points

    [entry] = entry_points(group="dask_cli", name=name)
    lines = commands(f"dask {name}")
    assert lines
    assert set().union(*lines) <= options_of(entry.load())
    assert CliRunner().invoke(entry.load(), ["--help"]).exit_code == 0


@pytest.mark.parametrize("text", re.findall(r"^    cluster:.*\n(?:     .*\n)*", PAGE, re.M))
def test_the_clusters_of_the_page_are_valid(text):
    jobqueue = pytest.importorskip("dask_jobqueue", reason="needs the extra mmbench[dask]")
    machines = {"protocol": {"test": {"kfold": 2}}, "machines": {"lda": {}}}
    content = {"name": "page", "datasets": ["wine"], **machines, **yaml.safe_load(text)}
    [config] = load_configs([content])
    arguments = config.cluster["slurm"].arguments("slurm")
    arguments.pop("interface", None)  # of a computer of the cluster
    with jobqueue.SLURMCluster(processes=1, **arguments) as cluster:
        script = cluster.job_script()
    assert "#SBATCH --cpus-per-task=8" in script
    assert "#SBATCH -t 02:00:00" in script
    assert "--nthreads 8 " in script
    assert ("module load gcc" in script) == ("module load gcc" in text)
