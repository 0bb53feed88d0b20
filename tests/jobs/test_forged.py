"""Records that are sealed again after a change: a damaged file, never a traceback."""

from __future__ import annotations

import copy
import json
import random
import shutil
from functools import reduce
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
    forged = copy.deepcopy(record)
    *way, last = rng.choice(list(places(record)))
    target = forged
    for key in way:
        target = target[key]
    others = [other for other in OTHERS if type(other) is not type(target[last])]
    target[last] = rng.choice(others)
    return forged, ".".join(map(str, (*way, last)))


@pytest.mark.parametrize("seed", range(24))
def test_a_forged_record_gives_no_traceback(seed, folder, tmp_path):
    store, rng = RecordStore(folder), random.Random(seed)
    path = store.path_of(store.keys()[seed % 4])
    intact = path.read_bytes()
    record = json.loads(intact)
    del record["seal"]
    forged, place = changed(record, rng)
    path.write_bytes(sealed(forged, indent=1))
    try:
        text = str(mmbench.table(folder))
        if seed % 3 == 0:  # a report of each of the four records
            mmbench.report([folder], tmp_path / "report")
        mmbench.export(folder)
        _, damaged = store.records()
        assert len(damaged) <= 1, place
        assert not damaged or "1 damaged record(s) left out, such as " in text, place
    finally:
        path.write_bytes(intact)


@pytest.mark.parametrize("change", [{"arrays": ...}, {"per_pair": []}, {"wrong_input": ...}])
def test_a_record_that_lacks_a_part_gives_no_traceback(change, folder):
    store = RecordStore(folder)
    path = store.path_of(store.keys()[0])
    intact = path.read_bytes()
    record = json.loads(intact) | change
    del record["seal"]
    path.write_bytes(sealed({k: v for k, v in record.items() if v is not ...}, indent=1))
    try:
        mmbench.table(folder)
        mmbench.export(folder)
        done = CliRunner().invoke(app, ["table", str(folder), "--metric", "auc"])
        assert done.exit_code == 0, done.exception
    finally:
        path.write_bytes(intact)


@pytest.mark.parametrize("environment", [{}, {"0": None}, {"mmbench": "1", "threads": {}}])
def test_a_record_without_its_environment_is_damaged(environment, folder):
    store = RecordStore(folder)
    path = store.path_of(store.keys()[0])
    intact = path.read_bytes()
    record = json.loads(intact) | {"environment": environment}
    del record["seal"]
    path.write_bytes(sealed(record, indent=1))
    try:
        assert "1 damaged record(s) left out" in str(mmbench.table(folder))
    finally:
        path.write_bytes(intact)


@pytest.mark.parametrize("seed", range(12))
def test_a_forged_plan_gives_no_traceback(seed, folder):
    path, rng = folder / PLAN, random.Random(seed)
    intact = path.read_bytes()
    plan = json.loads(intact)
    del plan["seal"]
    path.write_bytes(sealed(changed(plan, rng)[0]))
    try:
        mmbench.table(folder)
        mmbench.export(folder)
        RecordStore(folder).unused()
    finally:
        path.write_bytes(intact)


@pytest.mark.parametrize("file", ["plan", "record"])
def test_an_integer_beyond_64_bits_gives_no_traceback(file, folder):
    store = RecordStore(folder)
    path = folder / PLAN if file == "plan" else store.path_of(store.keys()[0])
    intact = path.read_bytes()
    content = json.loads(intact)
    del content["seal"]
    # of the entries of a list, one: the others have the same keys
    for way in {
        tuple(0 if isinstance(k, int) else k for k in at): at for at in places(content)
    }.values():
        forged, (*most, last) = copy.deepcopy(content), way
        target = reduce(getitem, most, forged)
        if type(target[last]) not in (int, type(None)):
            continue
        target[last] = 2**70
        path.write_bytes(sealed(forged, indent=1))
        try:
            mmbench.table(folder)
            mmbench.export(folder)
            mmbench.load(folder)
            RecordStore(folder).unused()
        except Exception as error:
            raise AssertionError(f"{'.'.join(map(str, way))}: {error!r}") from error
        finally:
            path.write_bytes(intact)


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
