"""Runs on a batch system, with a stand-in for the commands of SLURM."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

import mmbench
from mmbench.config.read import load_configs
from mmbench.errors import UserError
from mmbench.running.local import LocalExecutor

pytest.importorskip("dask_jobqueue", reason="needs the extra mmbench[dask]")

#: `sbatch SCRIPT` starts a copy of the script, which is deleted soon, in the background.
SBATCH = """#!/bin/bash
copy="{folder}/$$.copy"
cp "$1" "$copy"
setsid bash "$copy" > /dev/null 2>&1 &
cp "$copy" "{folder}/$!.script"
echo "Submitted batch job $!"
"""
#: `scancel JOB` ends the process group of the script.
SCANCEL = """#!/bin/bash
touch "{folder}/$1.cancelled"
kill -- "-$1"
"""
OPTIONS = {"interface": "lo", "queue": "short", "scheduler_options": {"dashboard_address": None}}
SLURM = {"cores": 1, "memory": "2 GB", "walltime": "90min", "jobs": 2, "options": OPTIONS}
CONFIG = {
    "name": "queued",
    "datasets": ["wine"],
    "protocol": {"test": {"holdout": 0.5}, "repeats": 2, "seed": 0},
    "machines": {"mpm": {"params": {"ridge": 0.1}}},
    "cluster": {"slurm": SLURM},
}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch):
    """A folder with the scripts of submitted jobs; all jobs are ended with the test."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (folder / name).write_text(text.format(folder=folder))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    yield folder
    for script in folder.glob("*.script"):
        with suppress(ProcessLookupError):
            os.killpg(int(script.stem), signal.SIGKILL)


def test_the_jobs_of_a_run_are_run_by_jobs_of_the_batch_system(slurm, tmp_path):
    lines: list[str] = []
    [finished] = mmbench.run(CONFIG, tmp_path / "results", say=lines.append)
    assert (finished.exit_code, finished.done) == (0, 2)
    assert "slurm: submitted the first of at most 2 jobs, cores per job: 1" in lines
    submitted = {path.stem for path in slurm.glob("*.script")}
    assert 1 <= len(submitted) <= 2
    assert {path.stem for path in slurm.glob("*.cancelled")} == submitted
    script = next(slurm.glob("*.script")).read_text()
    for line in ("#SBATCH --cpus-per-task=1", "#SBATCH -t 01:30:00", "#SBATCH -p short"):
        assert line in script
    assert "#SBATCH --mem=2G" in script


def test_a_refused_job_is_one_line(slurm, tmp_path):
    (slurm / "sbatch").write_text("#!/bin/bash\necho 'invalid partition: short' >&2; exit 1\n")
    with pytest.raises(UserError, match=r"^cluster slurm: .*invalid partition: short"):
        mmbench.run(CONFIG, tmp_path / "results", say=lambda line: None)


@pytest.mark.parametrize("scheduler", ["slurm", None])
@pytest.mark.parametrize("form", ["mapping", "file", "config"])
def test_no_worker_starts_on_this_computer_beside_a_batch_system(
    form, scheduler, monkeypatch, tmp_path
):
    monkeypatch.setattr(LocalExecutor, "__init__", lambda *_: pytest.fail("a local worker starts"))
    path = tmp_path / "queued.yaml"
    path.write_text(json.dumps(CONFIG))
    experiment = {"mapping": CONFIG, "file": path, "config": load_configs([CONFIG])[0]}[form]
    with pytest.raises(UserError, match="cluster slurm: this computer has no command sbatch"):
        mmbench.run(experiment, tmp_path / "results", scheduler=scheduler, say=lambda line: None)


def test_the_cluster_is_no_part_of_a_job():
    [config] = load_configs([CONFIG])
    [plain] = load_configs([{name: part for name, part in CONFIG.items() if name != "cluster"}])
    from mmbench.config.plan import plan

    keys = [[job.key for job in plan(c, Path("no-such-store"))] for c in (config, plain)]
    assert keys[0] == keys[1] and len(keys[0]) == 2


@pytest.mark.parametrize(("queue", "walltime"), [("slurm", "02:00:30"), ("lsf", "02:00")])
def test_the_walltime_is_in_the_form_of_the_batch_system(queue, walltime):
    own = {"cores": 8, "memory": "16GB", "walltime": 7230}
    [config] = load_configs([{**CONFIG, "cluster": {queue: own}}])
    arguments = config.cluster[queue].arguments(queue)
    assert arguments == {"cores": 8, "memory": "16000000000 B", "walltime": walltime}


def test_only_stated_clusters_must_be_equal(tmp_path):
    """The experiment from which parameters are taken runs on the cluster, too."""
    plain = {name: part for name, part in CONFIG.items() if name != "cluster"}
    (tmp_path / "plain.yaml").write_text(json.dumps({**plain, "name": "plain"}))
    source = {"parameters_from": str(tmp_path / "plain.yaml")}
    with pytest.raises(UserError, match="cluster slurm: this computer has no command sbatch"):
        mmbench.run({**CONFIG, **source}, tmp_path / "results", say=lambda line: None)
    other = {"slurm": {"cores": 2, "memory": "2 GB", "walltime": "1h"}}
    two = [CONFIG, {**CONFIG, "name": "other", "cluster": other}]
    with pytest.raises(UserError, match="cluster: differs between the configurations"):
        mmbench.run(two, tmp_path / "results", say=lambda line: None)
