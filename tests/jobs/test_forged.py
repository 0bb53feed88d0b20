"""Records that are sealed again after a change: a damaged file, never a traceback."""

from __future__ import annotations

import copy
import json
import random
import shutil
from contextlib import contextmanager
from functools import partial, reduce
from operator import getitem

import pytest
from helpers.serial_executor import SerialExecutor
from helpers.small_run import NO_DATA, make_jobs
from typer.testing import CliRunner

import mmbench
from mmbench.cli.app import app
from mmbench.config.files import find_config
from mmbench.jobs.planned import Plan
from mmbench.jobs.seal import sealed
from mmbench.jobs.store import PLAN, RecordStore
from mmbench.running.runner import run

OTHERS = (None, True, -1, 2.5, "text", [], [1, "a"], {}, {"a": 1}, [[{}]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "small"
    jobs = make_jobs(2)
    store = RecordStore.create(folder, "name: small\n", Plan("small").filled(jobs))
    assert run(jobs, store, SerialExecutor(), data=NO_DATA).exit_code == 0
    return folder


def places(value, at=()):
    """Yield the path of every value inside a record."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*at, key)
        if isinstance(item, dict | list):
            yield from places(item, (*at, key))


def changed(record, rng):
    content = copy.deepcopy(record)
    *way, last = rng.choice(list(places(record)))
    target = content
    for key in way:
        target = target[key]
    others = [other for other in OTHERS if type(other) is not type(target[last])]
    target[last] = rng.choice(others)
    return content


@contextmanager
def forged(folder, change, key=0):
    """Change the record of a job, or the plan (``key=None``), and seal it again."""
    store = RecordStore(folder)
    path = folder / PLAN if key is None else store.path_of(store.keys()[key])
    intact = path.read_bytes()
    content = json.loads(intact)
    del content["seal"]
    path.write_bytes(sealed(change(content), indent=1))
    try:
        yield store
    finally:
        path.write_bytes(intact)


@pytest.mark.parametrize("seed", range(12))
def test_a_forged_record_gives_no_traceback(seed, folder, tmp_path):
    rng = random.Random(seed)
    with forged(folder, partial(changed, rng=rng), seed % 4) as store:
        text = str(mmbench.table(folder))
        if seed % 3 == 0:  # a report of each of the four records
            mmbench.report([folder], tmp_path / "report")
        mmbench.export(folder)
        _, damaged = store.records()
        assert len(damaged) <= 1
        assert not damaged or "Damaged records left out: 1, such as " in text


@pytest.mark.parametrize("change", [{"arrays": ...}, {"per_pair": []}, {"wrong_input": ...}])
def test_a_record_that_lacks_a_part_gives_no_traceback(change, folder):
    def without(record):
        return {k: v for k, v in (record | change).items() if v is not ...}

    with forged(folder, without):
        mmbench.table(folder)
        mmbench.export(folder)
        done = CliRunner().invoke(app, ["table", str(folder), "--metric", "auc"])
        assert done.exit_code == 0, done.exception


@pytest.mark.parametrize("environment", [{}, {"0": None}, {"mmbench": "1", "threads": {}}])
def test_a_record_without_its_environment_is_damaged(environment, folder):
    with forged(folder, lambda record: record | {"environment": environment}):
        assert "Damaged records left out: 1" in str(mmbench.table(folder))


@pytest.mark.parametrize("seed", range(8))
def test_a_forged_plan_gives_no_traceback(seed, folder):
    with forged(folder, partial(changed, rng=random.Random(seed)), None) as store:
        mmbench.table(folder)
        mmbench.export(folder)
        store.unused()


@pytest.mark.parametrize("key", [None, pytest.param(0, marks=pytest.mark.slow)])
def test_an_integer_beyond_64_bits_gives_no_traceback(key, folder):
    found = {}
    with forged(folder, lambda content: found.update(content) or content, key):
        pass
    # of the entries of a list, one: the others have the same keys
    ways = {tuple(0 if isinstance(k, int) else k for k in at): at for at in places(found)}
    for *most, last in ways.values():
        if type(reduce(getitem, [*most, last], found)) in (int, type(None)):
            content = copy.deepcopy(found)
            reduce(getitem, most, content)[last] = 2**70
            with forged(folder, lambda _, content=content: content, key) as store:
                mmbench.table(folder)
                mmbench.export(folder)
                mmbench.load(folder)
                store.unused()


def test_a_folder_without_its_configuration_is_read_by_every_command(folder, tmp_path):
    copy_of = shutil.copytree(folder, tmp_path / "results" / "small")
    (copy_of / "experiment.yaml").unlink()
    assert find_config(copy_of) == copy_of / "experiment.yaml"
    (copy_of / "experiment.yaml").unlink()
    assert find_config(copy_of / "experiment.yaml").is_file()
    (copy_of / "experiment.yaml").unlink()
    assert str(mmbench.table(copy_of)) == str(mmbench.table(folder))
    (copy_of / "experiment.yaml").unlink()
    assert len(mmbench.load(tmp_path / "results")) == len(mmbench.load(folder))
