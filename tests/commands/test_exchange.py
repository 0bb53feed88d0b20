"""Results that are exchanged: bundles, and parts of an experiment that are merged."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import stat
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from helpers.serial_executor import no_processes
from packaging.requirements import Requirement
from typer.testing import CliRunner

import mmbench
from mmbench.cli.app import app
from mmbench.errors import UserError
from mmbench.jobs.seal import sealed, unseal
from mmbench.jobs.store import RecordStore
from mmbench.results import unpack
from mmbench.results.columns import names

NAME = "quickstart-smoke"
SETS = ("wdbc", "twonorm", "wine")
#: Data sets with few pairs of classes.
SET = f"datasets=[{', '.join(SETS)}]"


def typed(*arguments: object) -> str:
    """Return the output of a command that must succeed."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def refused(*arguments: object) -> str:
    """Return the message of a command that must be refused as wrong input."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 2 and len(done.output.splitlines()) == 1, done.output
    return done.output


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Results folders of three people, each with the jobs of one data set."""
    folder = tmp_path_factory.mktemp("parts")
    with no_processes():
        for name in SETS:
            options = ("--set", SET, "--only", f"dataset={name}", "--results", folder / name)
            typed("run", "quickstart", "--smoke", *options)
    return [folder / name for name in SETS]


@pytest.fixture(scope="module")
def whole(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    [merged] = mmbench.merge(*parts, output=folder)
    assert (merged.added, merged.done, merged.planned) == (18, 18, 18)
    return folder


@pytest.fixture(scope="module")
def bundle(whole, tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "out.zip"
    assert typed("export", whole, "--bundle", path) == f"{NAME}: written to {path}\n"
    return path


@pytest.fixture(scope="module")
def table(bundle):
    return typed("table", bundle)


def rewritten(bundle: Path, target: Path, changes) -> Path:
    """Write a copy of a bundle with other contents of some files."""
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            new.writestr(
                info, changes[info.filename](content) if info.filename in changes else content
            )
    return target


# -- merge -----------------------------------------------------------------------------------------


def test_a_table_made_by_three_people_is_the_table_of_one_run(parts, whole, tmp_path, one_process):
    both = typed("merge", parts[0], parts[2], "-o", tmp_path)
    assert both == (
        f"{NAME}: 12 records added; 12 of 18 jobs are done; records are in {tmp_path / NAME}\n"
    )
    said = typed("run", tmp_path / NAME)  # the merged folder resumes
    assert f"{NAME}: 6 jobs done, 12 done before, 0 failed" in said
    typed("compare", whole, tmp_path)
    again = typed("merge", *parts, "-o", tmp_path)
    assert "0 records added, 18 equal duplicates left out; 18 of 18 jobs are done" in again


def test_records_are_copied_byte_by_byte(parts, whole):
    for part in parts:
        store = RecordStore(part / NAME)
        for key in store.keys():  # noqa: SIM118
            for suffix in (".json", ".npz"):
                copy = RecordStore(whole / NAME).path_of(key, suffix)
                assert copy.read_bytes() == store.path_of(key, suffix).read_bytes()


def test_an_interrupted_merge_continues(parts, tmp_path, monkeypatch):
    adopt, calls = RecordStore.adopt, []

    def interrupted(*arguments):
        if len(calls) == 8:
            raise KeyboardInterrupt
        calls.append(arguments)
        return adopt(*arguments)

    monkeypatch.setattr(RecordStore, "adopt", interrupted)
    assert (
        CliRunner().invoke(app, ["merge", *map(str, parts), "-o", str(tmp_path)]).exit_code == 130
    )
    assert len(mmbench.load(tmp_path)) == 8, "what was copied is a readable folder"
    monkeypatch.undo()
    assert "10 records added" in typed("merge", *parts, "-o", tmp_path)


def resealed(folder: Path, change) -> str:
    """Change the record of a job, with a new seal; return its key."""
    store = RecordStore(folder)
    key = store.keys()[0]
    record = unseal(store.path_of(key).read_bytes(), 1)
    change(record)
    store.path_of(key).write_bytes(sealed(record))
    return key


def other_metrics(record):
    record["metrics"]["errors_count"] += 1


def other_data(record):
    record["job"]["dataset_hash"] = "f" * 64


def other_settings(folder):
    shutil.rmtree(folder)
    options = {"smoke": True, "only": ["dataset=wdbc"], "set": [SET, "machines.svm.grid.C=[10]"]}
    mmbench.run("quickstart", folder.parent, **options)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda folder: resealed(folder, other_metrics), "differ in wdbc "),
        (lambda folder: resealed(folder, other_data), "other data of 'wdbc'"),
        (lambda folder: (folder / "plan.json").unlink(), "no intact plan"),
        (other_settings, "other settings: machines"),
    ],
)
def test_conflicts_are_named_and_nothing_is_written(change, found, parts, tmp_path, one_process):
    mine, target = tmp_path / "mine", tmp_path / "target"
    shutil.copytree(parts[0], mine)
    change(mine / NAME)
    assert found in refused("merge", mine, parts[0], "-o", target)
    assert not target.exists()


def test_the_first_record_is_taken_on_request(parts, tmp_path):
    mine = tmp_path / "mine"
    shutil.copytree(parts[0], mine)
    key = resealed(mine / NAME, other_metrics)
    said = typed("merge", parts[0], mine, "-o", tmp_path / "all", "--first")
    assert "the first is taken" in said
    found = [RecordStore(f / NAME).path_of(key).read_bytes() for f in (tmp_path / "all", parts[0])]
    assert found[0] == found[1]


# -- bundles ---------------------------------------------------------------------------------------


def test_every_command_reads_a_bundle_as_the_folder(whole, bundle, table, tmp_path):
    assert table == typed("table", whole)
    assert typed("compare", bundle, whole).startswith("agrees: 18 ")
    # the certificates of a bundle have fewer digits, and the accuracy of each pair of classes
    frames = [mmbench.load(path) for path in (bundle, whole)]
    fits = [
        [fit for text in frame.pop("certificates") for fit in json.loads(text)] for frame in frames
    ]
    pd.testing.assert_frame_equal(*frames)
    assert {name for short, long in zip(*fits, strict=True) for name in long.keys() - short} == {
        "bound"
    }
    for name in ("objective", "gap", "max_violation", "n_support"):
        numbers = [[fit[name] for fit in own] for own in fits]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-8 if name == "objective" else 1e-3)
    assert len(pd.read_csv(io.StringIO(typed("export", bundle)))) == 18
    typed("report", bundle, "--output", tmp_path / "site")
    typed("export", whole, "--bundle", tmp_path / bundle.name)
    assert (tmp_path / bundle.name).read_bytes() == bundle.read_bytes()


def test_a_sample_runs_again_elsewhere_and_agrees(bundle, tmp_path, monkeypatch, one_process):
    monkeypatch.chdir(tmp_path)
    said = typed("run", bundle, "--sample", 3, "--sample-seed", 1)
    assert f"{NAME}: 3 of 18 jobs, drawn at random from the seed 1" in said
    n = len(mmbench.load("results"))
    assert 3 <= n < 9
    assert typed("compare", bundle, "results", "--part").startswith("agrees: ")
    assert CliRunner().invoke(app, ["compare", str(bundle), "results"]).exit_code == 1
    assert f"{NAME}: {n} jobs, {n} of them stored" in typed(
        "run", bundle, "--sample", 3, "--sample-seed", 1, "--dry-run"
    )


def test_pip_takes_the_versions(bundle):
    lines = zipfile.ZipFile(bundle).read("requirements.txt").decode().splitlines()
    found = [Requirement(line.partition(" #")[0]) for line in lines if line[0] != "#"]
    assert {"mmbench", "numpy", "scikit-learn"} <= {one.name for one in found}
    assert all(str(one.specifier).startswith("==") for one in found)


def test_the_description_is_an_ro_crate(bundle):
    archive = zipfile.ZipFile(bundle)
    crate = json.loads(archive.read("ro-crate-metadata.json"))
    by_id = {entity["@id"]: entity for entity in crate["@graph"]}
    assert len(by_id) == len(crate["@graph"]) and all("@type" in e for e in by_id.values())
    assert crate["@context"] == "https://w3id.org/ro/crate/1.2/context"
    descriptor = by_id["ro-crate-metadata.json"]
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.2"}
    assert descriptor["about"] == {"@id": "./"}
    root = by_id["./"]
    assert {"name", "description", "datePublished", "license", "hasPart"} <= root.keys()

    def named(value):
        if isinstance(value, dict):
            yield from [value["@id"]] if "@id" in value else ()
        for part in value if isinstance(value, list) else ():
            yield from named(part)

    used = {name for e in by_id.values() for v in e.values() for name in named(v)}
    assert used - by_id.keys() == {crate["@context"].removesuffix("/context")}
    files = {name for name, e in by_id.items() if e["@type"] == "File"}
    inside = {name for name in archive.namelist() if not name.endswith("/")}
    assert files == inside - {"ro-crate-metadata.json"} and files <= used
    for name in files:
        assert int(by_id[name]["contentSize"]) == archive.getinfo(name).file_size


#: The part of the context of RO-Crate 1.2 that bundles use.
VOCABULARY = {
    "@vocab": "http://schema.org/",
    "File": "http://schema.org/MediaObject",
    "conformsTo": {"@id": "http://purl.org/dc/terms/conformsTo"},
}


@pytest.mark.parametrize("fault", [None, "datePublished", "license"])
def test_the_public_validator_accepts_the_description(fault, bundle, tmp_path, monkeypatch):
    services = pytest.importorskip("rocrate_validator.services")
    models = pytest.importorskip("rocrate_validator.models")
    contexts = pytest.importorskip("rdflib.plugins.shared.jsonld.context")
    monkeypatch.setattr(contexts.Context, "_fetch_context", lambda *_: VOCABULARY)
    change = {"ro-crate-metadata.json": lambda text: text.replace(f'"{fault}"'.encode(), b'"x"')}
    settings = services.ValidationSettings(
        rocrate_uri=models.URI(str(rewritten(bundle, tmp_path / "out.zip", change))),
        profile_identifier="ro-crate-1.2",
        requirement_severity=models.Severity.REQUIRED,
        skip_checks=["ro-crate-1.2_4.1", "ro-crate-1.2_4.2"],  # download the context
    )
    messages = [issue.message for issue in services.validate(settings).get_issues()]
    assert bool(messages) == bool(fault) and (not fault or fault in messages[0]), messages


def added(text):
    return {f"{NAME}/config.yaml": lambda content: content + text.encode()}


def replaced(old, new):
    return {f"{NAME}/config.yaml": lambda content: content.replace(old.encode(), new.encode())}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (replaced("{name: wdbc}", "{path: ../my.csv, target: y}"), "without folders"),
        (replaced("{name: wdbc}", "{path: /etc/passwd}"), "without folders"),
        (replaced("{name: wdbc}", "{path: ~/my.csv}"), "without folders"),
        (replaced("{name: wdbc}", "{path: my.csv, target: y}"), "my.csv"),
        (replaced("{name: wdbc}", "{name: wdbc, preprocess: evil_code.Step}"), "--trusted"),
        (replaced("mmrm: {", "mmrm: {estimator: evil_code.Machine, "), "--trusted"),
        (replaced("mmrm: {", "mmrm: {machine: 'evil_code:Machine', "), "--trusted"),
        (added("published: /etc/passwd\n"), "a bundle contains rows"),
        (added("parameters_from: ../../other.yaml\n"), "parameters_from"),
        (added("cluster: {slurm: {cores: 1, memory: 1 GB, walltime: 1h}}\n"), None),
        ({f"{NAME}/config.yaml": lambda content: b"- 1\n"}, "not a configuration"),
    ],
)
def test_a_bundle_runs_no_code_and_reads_no_files_of_its_own(
    changes, found, bundle, table, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil_code.py").write_text("raise SystemExit('code of the bundle ran')\n")
    path = rewritten(bundle, tmp_path / "out.zip", changes)
    assert typed("table", path) == table
    if found is None:
        typed("run", path, "--dry-run")
    else:
        assert found in refused("run", path, "--dry-run")
    assert "evil_code" not in sys.modules


def entry(name, content=b"1", mode=0o100644, **fields):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


TABLE, SPLITS = f"{NAME}/table.csv", f"{NAME}/splits.csv.gz"


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([entry("../table.csv")], "'../table.csv' would leave its folder"),
        ([entry("/x/table.csv")], "would leave its folder"),
        ([entry("x/../../table.csv")], "would leave its folder"),
        ([entry("..\\table.csv")], "would leave its folder"),
        ([entry("c:x/table.csv")], "would leave its folder"),
        ([entry("x/link", b"/etc/passwd", stat.S_IFLNK | 0o777)], "is a link or a device"),
        ([entry("x/pipe", b"", stat.S_IFIFO | 0o600)], "is a link or a device"),
        ([entry(TABLE), entry(TABLE.upper().replace("TABLE.CSV", "table.csv"))], "occurs twice"),
        ([entry("-x/table.csv")], "is not the name of an experiment"),
        ([entry(TABLE, compress_type=zipfile.ZIP_LZMA)], "unknown method"),
        ([entry(TABLE, b"0" * 2001)], "has more than 2000 bytes"),
        ([entry(SPLITS, gzip.compress(b"0" * 2001))], f"{SPLITS!r} has more than 2000 bytes"),
        ([entry(SPLITS, gzip.compress(b"0")[:-9])], f"{SPLITS!r}: Compressed file ended"),
        ([entry(f"x{k}/table.csv", b"0" * 1500) for k in range(3)], "have more than 4000 bytes"),
        ([entry(f"x{k}/other.txt") for k in range(400)], "too many files"),
        ([entry("other.txt")], "it contains no folder of an experiment"),
        (
            [entry(f"{NAME}/other.txt"), entry(f"{NAME}/records/1.json")],
            "no folder of an experiment",
        ),
        ([entry(TABLE)], "not a table of mmbench"),
        (b"PK\3\4 and no more", "it is no zip file, or is incomplete"),
        (b"", "it is no zip file, or is incomplete"),
        (b"PK\5\6" + b"\xff" * 18, "too many files"),
        (b"PK\6\7" + b"\0" * 16 + b"PK\5\6" + b"\0" * 18, "too many files"),
    ],
)
def test_what_is_no_bundle_is_refused(entries, found, tmp_path, monkeypatch):
    for name, most in (("FILE_BYTES", 2000), ("WHOLE_BYTES", 4000), ("LIST_BYTES", 20_000)):
        monkeypatch.setattr(unpack, name, most)
    path = tmp_path / "home" / "out.zip"
    path.parent.mkdir()
    if isinstance(entries, bytes):
        path.write_bytes(entries)
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for info, content in entries:
                archive.writestr(info, content)
    assert found in refused("table", path)
    assert [*tmp_path.rglob("*")] == [path.parent, path]


def test_a_size_that_lies_is_noticed(bundle, tmp_path):
    """The list at the end of the file states that a large file has one byte."""
    path = tmp_path / "out.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(TABLE, b"0" * 10**6)
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\1\2") + 24
    data[at : at + 4] = (1).to_bytes(4, "little")
    path.write_bytes(data)
    assert "not a bundle of mmbench" in refused("table", path)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("--bundle", "out.tar"), "must end in .zip"),
        (("--bundle", "out.zip", "--predictions"), "--bundle takes no --output"),
    ],
)
def test_wrong_options_of_a_bundle_are_refused(arguments, found, whole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert found in refused("export", whole, *arguments)


def test_references_are_bundled_with_their_published_values(tmp_path):
    path = tmp_path / "reference.zip"
    mmbench.export("reference/usps_rbf", bundle=path)
    names = zipfile.ZipFile(path).namelist()
    assert {"usps_rbf/published.csv", "usps_rbf/config.yaml"} <= {*names}
    assert mmbench.table(path) == mmbench.table("reference/usps_rbf")


def test_a_bundle_contains_the_rows_of_a_published_table(tmp_path, monkeypatch, one_process):
    monkeypatch.chdir(tmp_path)
    rows = "dataset,machine,value,std,n_splits\nwine,svm,97.5,1,10\nwine,lda,60,0.5,10\n"
    Path("mine.csv").write_text(rows)
    given = {
        "name": "own",
        "datasets": [{"name": "wine", "preprocess": "standard"}],
        "kernel": "linear",
        "protocol": {"test": {"kfold": 2}},
        "machines": {"svm": {"params": {"C": 1}}, "lda": {}},
        "published": "mine.csv",
    }
    mmbench.run(given)
    Path("tables").mkdir()
    mmbench.export("results", output="tables")
    assert list(pd.read_csv("tables/own/pairs.csv.gz")) == names("pairs")
    Path("tables/own/config.yaml").write_text(json.dumps(given))
    shutil.move("mine.csv", "tables/own")

    def marks(results: str) -> str:
        return mmbench.table(results).partition("**CPU")[0]

    for folder in ("results", "tables"):
        mmbench.export(folder, bundle=f"{folder}.zip")
    shutil.rmtree("tables")  # with the published table
    for bundle in ("results.zip", "tables.zip"):
        mmbench.run(bundle, f"again_{bundle}")
        assert "✓" in marks("results")
        assert marks(f"again_{bundle}") == marks(bundle) == marks("results")


def test_a_bundle_of_ones_own_table_names_no_folders(tmp_path, monkeypatch, one_process):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k % 7},{k % 5},{'ab'[k % 2]}\n" for k in range(60))
    (tmp_path / "my.csv").write_text("u,v,y\n" + rows)
    given = {
        "name": "own",
        "datasets": [{"path": "my.csv", "target": "y"}],
        "protocol": {"test": {"kfold": 2}},
        "machines": {"svm": {"params": {"C": 1, "gamma": 1}}},
    }
    mmbench.run(given)
    mmbench.export("results", bundle="out.zip")
    text = zipfile.ZipFile("out.zip").read("own/config.yaml").decode()
    assert "path: my.csv" in text and str(tmp_path) not in text
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("out.zip", "my.csv"):
        shutil.copy(name, elsewhere)
    (tmp_path / "my.csv").unlink()
    mmbench.run(elsewhere / "out.zip", elsewhere / "results")
    assert mmbench.compare("out.zip", elsewhere / "results").exit_code == 0
    with pytest.raises(UserError, match=r"my\.csv"):
        mmbench.run("out.zip", "again")
