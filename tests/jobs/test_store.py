"""The results folder: complete records or none, whatever happens in between."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from contextlib import nullcontext
from dataclasses import replace
from functools import reduce
from operator import getitem

import numpy as np
import pytest

from mmbench.commands.outputs import clean
from mmbench.errors import Status, UserError
from mmbench.jobs import store as store_module
from mmbench.jobs.job import Job
from mmbench.jobs.planned import Plan
from mmbench.jobs.record import is_done, new_record, plain
from mmbench.jobs.seal import BadRecord, sealed, unseal
from mmbench.jobs.store import RecordStore

PAIR = {"status": "optimal", "pair": [0, 1], "objective": 2, "margin": 1}


def done(job, errors=1):
    return new_record(job, Status.OPTIMAL, metrics={"errors_count": errors})


@pytest.fixture
def arrays():
    return {"predicted": np.array(["a", "b"]), "decisions": np.eye(2, dtype=np.float32)}


def test_a_record_comes_back_as_it_was_written(store, job, arrays):
    store.write(done(job), arrays)
    record = store.read(job.key)
    assert store.has(job.key)
    assert record["metrics"] == {"errors_count": 1}
    assert record["job"] == job.to_dict()
    assert list(map(store.read, store.keys())) == [record]
    for name, array in store.arrays(job.key).items():
        np.testing.assert_array_equal(array, arrays[name])
        assert array.dtype == arrays[name].dtype


@pytest.mark.parametrize(
    "changes",
    [
        {"preprocess": (("sklearn.feature_selection:SelectKBest", (("k", 1),)),)},
        {"preprocess": (("own:Step", (("sizes", (1, 2)), ("by", (("a", 0.5),)))),)},
        {"options": (("categories", ("red", "green")), ("units", (("width", "cm"),)))},
        {"params": (("hidden_layer_sizes", (20, 10)), ("class_weight", (("x", 1), ("y", 5))))},
        {"grid": (("hidden_layer_sizes", ((5,), (5, 5))), ("fit_intercept", (True, False)))},
    ],
)
def test_a_record_with_nested_settings_comes_back(store, job, changes):
    own = {k: v for k, v in changes.items() if k in ("preprocess", "options")}
    made = replace(job, dataset=replace(job.dataset, **own), **(changes if not own else {}))
    store.write(done(made), {})
    assert Job.from_dict(store.read(made.key)["job"]) == made


def test_a_file_name_that_is_no_unicode_is_no_damage(store, job):
    """Python decodes the bytes of such a name to lone surrogates; errors may contain them too."""
    job = replace(job, dataset=replace(job.dataset, path="d\udcff/x.csv"))
    store.write(new_record(job, Status.FAILED, "no \udc80 and \x1b"), {})
    record = store.read(job.key)
    assert (record["reason"], record["job"]["dataset"]["path"]) == (
        "no \udc80 and \x1b",
        "d\udcff/x.csv",
    )


def test_equal_results_are_equal_files(store, job, arrays, tmp_path):
    other = RecordStore.create(tmp_path / "other", "name: small\n")
    record = done(job)
    for each in (store, other):
        each.write(record, arrays)
    for suffix in (".json", ".npz"):
        one, two = (each.path_of(job.key, suffix).read_bytes() for each in (store, other))
        assert one == two


def test_a_finished_record_is_never_replaced(store, job):
    store.write(done(job))
    with pytest.raises(FileExistsError):
        store.write(done(job, errors=0))


def test_a_failed_record_gives_way_to_the_next_attempt(store, job):
    store.write(new_record(job, Status.FAILED, "out of luck"))
    assert not store.has(job.key)
    assert not is_done(store.read(job.key))
    store.write(done(job))
    assert store.has(job.key)


@pytest.mark.parametrize("moment", [1, 2])
def test_a_crash_while_writing_leaves_no_record(store, job, arrays, monkeypatch, moment):
    """Moment 1: nothing is renamed yet. Moment 2: the arrays are there, the JSON is not."""
    calls = []
    real = store_module.write_atomically

    def crash(path, content):
        calls.append(path)
        if len(calls) == moment:
            path.with_name(path.name + ".tmp").write_bytes(b"half")
            raise KeyboardInterrupt
        real(path, content)

    monkeypatch.setattr(store_module, "write_atomically", crash)
    with pytest.raises(KeyboardInterrupt):
        store.write(done(job), arrays)
    monkeypatch.undo()
    assert not store.has(job.key)
    assert list(map(store.read, store.keys())) == []
    with store.locked():
        assert not list(store.folder.rglob("*.tmp"))
        store.write(done(job), arrays)
    assert store.has(job.key)


def test_a_full_disk_is_one_line(store, job, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store_module, "write_atomically", full)
    with pytest.raises(UserError, match="cannot be written to: No space left on device"):
        store.write(done(job))


def _truncate(path):
    path.write_bytes(path.read_bytes()[:-20])


def _forge(path):
    path.write_text(path.read_text().replace('"errors_count": 1', '"errors_count": 0'))


@pytest.mark.parametrize(
    "damage, suffix",
    [(_truncate, ".json"), (_forge, ".json"), (_truncate, ".npz"), (os.remove, ".npz")],
)
def test_a_damaged_record_is_put_aside_and_said(store, job, arrays, damage, suffix):
    store.write(done(job), arrays)
    damage(store.path_of(job.key, suffix))
    with pytest.raises(BadRecord):
        store.read(job.key)
    found, damaged = store.records()
    assert (found, len(damaged)) == ([], 1)
    assert damaged[0].startswith(f"{job.key}.json: ")
    said = []
    assert store.recover([job.key], said.append) == {}
    assert len(said) == 1
    assert job.key in said[0]
    assert store.keys() == []
    assert (store.folder / "records" / "quarantine" / f"{job.key}.json").exists()
    store.write(done(job), arrays)
    assert store.has(job.key)


def test_a_record_under_another_name_is_damaged(store, jobs):
    store.write(done(jobs[0]))
    store.path_of(jobs[0].key).rename(store.path_of(jobs[1].key))
    with pytest.raises(BadRecord, match="holds the record"):
        store.read(jobs[1].key)


@pytest.mark.parametrize(
    "path, value",
    [
        (("status",), "good"),
        (("metrics", "errors_count"), "1"),
        (("per_pair", 0, "pair"), ["a", "b", "c"]),
        (("job", "machine"), 5),
        (("job", "params"), {"C": 1}),
        (("job", "split", "args"), 0.1),
        (("job", "split", "repeat"), "0"),
        (("job", "parent"), 1),
    ],
)
def test_an_entry_of_a_wrong_type_is_damage_and_named(store, job, path, value):
    record = new_record(job, Status.OPTIMAL, metrics={"errors_count": 1}, per_pair=[PAIR])
    store.write(record)
    assert store.read(job.key)["per_pair"] == [PAIR]
    *most, last = path
    reduce(getitem, most, record)[last] = value
    store.path_of(job.key).write_bytes(sealed(record))
    with pytest.raises(BadRecord, match="^" + r"\.".join(map(str, path)) + ".*: .*should"):
        store.read(job.key)


def test_python_objects_are_not_stored(store, job):
    with pytest.raises(TypeError, match="Python objects"):
        store.write(done(job), {"predicted": np.array([object()])})


def test_numbers_without_a_value_become_null():
    assert plain({"a": np.float32(np.inf), "b": np.arange(2), "c": Status.OPTIMAL}) == {
        "a": None,
        "b": [0, 1],
        "c": "optimal",
    }


class TestFoldersThatAreNotOurs:
    def test_a_file_is_refused(self, tmp_path):
        (tmp_path / "results").write_text("")
        for folder in (tmp_path / "results", tmp_path / "results" / "small"):
            with pytest.raises(UserError, match="is a file"):
                RecordStore.create(folder, "")

    def test_foreign_content_is_refused_and_left_alone(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("years of work")
        with pytest.raises(UserError, match=r"'thesis.tex' but no experiment.yaml"):
            RecordStore.create(tmp_path, "")
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]

    def test_what_a_run_killed_at_once_leaves_is_taken_over(self, tmp_path):
        (tmp_path / "records").mkdir()
        (tmp_path / "experiment.yaml.tmp").write_text("na")
        assert RecordStore.create(tmp_path, "name: small\n").keys() == []

    def test_reading_needs_a_results_folder(self, tmp_path):
        for folder in (tmp_path, tmp_path / "nowhere"):
            with pytest.raises(UserError, match="not the results folder"):
                RecordStore(folder)

    def test_a_read_only_place_is_refused(self, tmp_path, monkeypatch):
        def read_only(path, *_, **options):
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(type(tmp_path), "mkdir", read_only)
        with pytest.raises(UserError, match="cannot be written"):
            RecordStore.create(tmp_path / "small", "")


HOLDER = """
import sys, time
from pathlib import Path
from mmbench.jobs.seal import BadRecord
from mmbench.jobs.job import Job
from mmbench.jobs.planned import Plan
from mmbench.jobs.store import RecordStore
with RecordStore(Path(sys.argv[1])).locked():
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_run_is_told_who_holds_the_folder_and_a_dead_one_holds_nothing(store):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(store.folder)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    refusal = f"in use by process {holder.pid} on "
    with pytest.raises(UserError, match=refusal), store.locked():
        pass
    with pytest.raises(UserError, match=refusal):
        RecordStore.create(store.folder, "name: other\n")
    assert (store.folder / "experiment.yaml").read_text() == "name: small\n"
    holder.kill()
    holder.communicate()
    with store.locked():
        pass


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "run"
    (folder / "records").mkdir(parents=True)
    (folder / "experiment.yaml").write_text("name: small\n")
    for name in ("experiment.yaml.tmp", "plan.json.tmp"):
        (folder / name).symlink_to(victim)
    RecordStore.create(folder, "name: small\n", Plan("small"))
    assert victim.read_text() == "precious"


def test_linked_records_and_locks_are_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "experiment.yaml").write_text("name: small\n")
    (folder / "records").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link"):
        RecordStore(folder)
    (folder / "records").unlink()
    (folder / ".lock").symlink_to(tmp_path / "lock")
    with pytest.raises(UserError, match="is a link"), RecordStore(folder).locked():
        pass
    (folder / ".lock").unlink()
    os.mkfifo(folder / ".lock")
    with pytest.raises(UserError, match="no regular file"), RecordStore(folder).locked():
        pass


@pytest.mark.parametrize("name", ["quarantine", "superseded"])
def test_nothing_is_removed_through_a_link(tmp_path, name):
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "run"
    (elsewhere / "sub").mkdir(parents=True)
    (elsewhere / "file").write_text("precious")
    store = RecordStore.create(folder, "name: small\n", Plan("small"))
    aside = folder / "records" / name
    aside.symlink_to(elsewhere)
    with pytest.raises(UserError, match="is a link"):
        clean(folder, remove=True)
    aside.unlink()
    aside.mkdir()
    (aside / "linked").symlink_to(elsewhere)
    assert store.unused() == [aside / "linked"]
    assert "1 files" in clean(folder, remove=True)[0]
    assert (elsewhere / "file").read_text() == "precious" and (elsewhere / "sub").is_dir()


def _forged(**changes) -> bytes:
    y, buffer = np.array(["a", "b", "b"]), io.BytesIO()
    arrays = {"test_index": np.arange(3), "predicted": y, "y_test": y, "decisions": np.ones((3, 1))}
    np.savez(buffer, **{k: v for k, v in {**arrays, **changes}.items() if v is not None})
    return buffer.getvalue()


def _zipped(**parts: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(f"{name}.npy", content)
    return buffer.getvalue()


HUGE_HEADER = io.BytesIO()
np.lib.format.write_array_header_1_0(
    HUGE_HEADER, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
)
FORGED = {
    "empty": b"",
    "text": b"no arrays",
    "pickle": pickle.dumps([1, 2]),
    "pickled member": _zipped(decisions=pickle.dumps([1, 2])),
    "cut": _forged()[:-40],
    "huge header": _zipped(decisions=HUGE_HEADER.getvalue()),
    "unfolds": _zipped(decisions=b"0" * 200_000),
    "objects": _forged(decisions=np.array([[None]] * 3)),
    "no predictions": _forged(predicted=None),
    "short": _forged(y_test=np.array(["a"])),
    "flat decisions": _forged(decisions=np.ones(3)),
    "text as decisions": _forged(decisions=np.full((3, 1), "1")),
    "numbers of rows as text": _forged(test_index=np.array(["0", "1", "2"])),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_arrays_are_damage(tmp_path, name):
    store = RecordStore.create(tmp_path / "run", "name: small\n")
    store.path_of("abc", ".npz").write_bytes(_forged())
    assert set(store.arrays("abc")) == {"test_index", "predicted", "y_test", "decisions"}
    store.path_of("abc", ".npz").write_bytes(FORGED[name])
    with pytest.raises(BadRecord, match=r"abc\.npz: not the arrays of a record: .+"):
        store.arrays("abc")


def test_a_device_in_the_place_of_a_record_is_damage(tmp_path):
    store = RecordStore.create(tmp_path / "run", "name: small\n")
    store.path_of("abc").symlink_to("/dev/zero")
    assert store.keys() == ["abc"]
    with pytest.raises(BadRecord, match="link"):
        store.read("abc")
    assert store.records()[1] == ["abc.json: cannot be read (a link, which is not followed)"]


def test_a_record_larger_than_the_bound_is_damage(tmp_path, monkeypatch):
    from mmbench.jobs import store as module

    store = RecordStore.create(tmp_path / "run", "name: small\n")
    store.path_of("abc").write_text("x" * 100)
    monkeypatch.setattr(module.read_regular, "__defaults__", (50,))
    with pytest.raises(BadRecord, match="100 bytes, more than 50"):
        store.read("abc")


def test_a_lost_configuration_is_written_again_from_the_plan(tmp_path):
    text = "name: small\n"
    folder = tmp_path / "run"
    RecordStore.create(folder, text, Plan("small"))
    (folder / "experiment.yaml").unlink()
    assert RecordStore(folder).damage() == []
    assert (folder / "experiment.yaml").read_text() == text


CONTENT = {"schema": 1, "name": "caf\udce9", "n": 5}
HASH = hashlib.sha256(json.dumps(CONTENT, sort_keys=True).encode()).hexdigest()
SEALED = {
    "today": (sealed(CONTENT, indent=1), "", CONTENT),
    "earlier version": (json.dumps({**CONTENT, "seal": HASH}).encode(), "", CONTENT),
    "edited": (sealed(CONTENT).replace(b"5", b"6"), "does not match", None),
    "empty seal": (json.dumps({**CONTENT, "seal": ""}).encode(), "does not match", None),
    "list": (b"[1]", "does not match", None),
    "long integer": (b'{"schema":1,"n":' + b"9" * 30 + b"}", "not complete", None),
    "nested": (b"[" * 9999 + b"]" * 9999, "not complete", None),
}


@pytest.mark.parametrize("name", SEALED)
def test_a_seal_is_checked(name):
    text, fault, content = SEALED[name]
    with pytest.raises(BadRecord, match=fault) if fault else nullcontext():
        assert unseal(text, 1) == content


@pytest.mark.parametrize("cells", [[{"key": ["iris"], "n_splits": 1}], [{}], 5])
def test_a_sealed_plan_with_entries_of_wrong_types_is_damaged(cells, tmp_path):
    folder = tmp_path / "run"
    store = RecordStore.create(folder, "name: small\n", Plan("small"))
    (folder / "plan.json").write_bytes(sealed({"schema": 1, "name": "small", "cells": cells}))
    [message] = store.damage()
    assert message.startswith("plan.json is damaged (cells")
    assert store.unused() is None


def test_a_lock_that_is_no_text_names_another_process(tmp_path, monkeypatch):
    from filelock import FileLock

    store = RecordStore.create(tmp_path / "run", "name: small\n")
    with FileLock(tmp_path / "run" / ".lock"):
        (tmp_path / "run" / ".lock").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(UserError, match="in use by another process"), store.locked():
            pass
