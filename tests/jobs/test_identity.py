"""The identity of the code behind a record, and what makes a finished job run again."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers.serial_executor import SerialExecutor
from helpers.small_run import NO_DATA, make_jobs
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from mmbench.config.plan import plan
from mmbench.config.read import config_of
from mmbench.datasets.preprocess import parse_steps
from mmbench.jobs import identity
from mmbench.jobs.store import RecordStore
from mmbench.machines import MACHINES, SVM, machine_class
from mmbench.running.progress import Lines
from mmbench.running.runner import run


def digest(source):
    return identity.without_docstrings(ast.parse(source))


def test_rewording_leaves_the_fingerprint_and_code_does_not():
    source = 'def f(x):\n    """Return x."""\n    return x + 1  # why\n'
    reworded = 'def f(x):\n    """The same number."""\n\n    return (x + 1)\n'
    assert digest(source) == digest(reworded)
    assert digest(source) != digest(source.replace("+ 1", "+ 2"))


def test_the_fingerprint_is_the_same_under_all_versions_of_python():
    assert digest("class A:\n    x = []\n") == (
        "Module(body=[ClassDef(name='A', bases=[], keywords=[], body=[Assign(targets=["
        "Name(id='x', ctx=Store())], value=List(elts=[], ctx=Load()))], decorator_list=[])], "
        "type_ignores=[])"
    )
    assert digest("x = f'{x:>{y}}'").endswith(
        "format_spec=JoinedStr(values=[Constant(value='>'), FormattedValue(value="
        "Name(id='y', ctx=Load()), conversion=-1)]))]))], type_ignores=[])"
    )


def test_the_fingerprint_is_of_all_modules_behind_a_machine():
    modules = identity.modules_behind("mmbench.machines.svm")
    assert {"mmbench.machines.svm", "mmbench.machines.base.estimator"} <= modules
    assert "mmbench.kernels.matrix" in modules
    assert not any("mmrm" in name or "tables" in name for name in modules)
    assert identity.fingerprint("svm") != identity.fingerprint("mmrm")
    assert identity.fingerprint("mamc") == identity.fingerprint("mamc_b")


def test_fingerprints_of_machines_are_found_without_their_imports():
    code = (
        "from mmbench import machines; from mmbench.jobs.identity import fingerprint; import sys\n"
    )
    code += "print({n: fingerprint(n) for n in machines.MACHINES}, 'sklearn' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = {name: machine_class(name).__module__ for name in MACHINES}
    known = {name: identity.module_fingerprint(module) for name, module in modules.items()}
    assert found.stdout.strip() == f"{known} False"


def test_a_plug_in_has_a_fingerprint_of_all_its_modules(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "own_machines"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "step.py").write_text("STEP = 1\n")
    (folder / "other.py").write_text("OTHER = 1\n")
    (folder / "machine.py").write_text(
        "from mmbench.machines.svm import SVM\nfrom own_machines.step import STEP\n"
        "from .other import OTHER\n"
        "class Own(SVM):\n    pass\n"
    )
    modules = identity.modules_behind("own_machines.machine")
    assert {"own_machines.step", "mmbench.machines.svm", "mmbench.kernels.matrix"} <= modules
    for name in ("step", "other"):
        before = identity.fingerprint("own_machines.machine:Own")
        (folder / f"{name}.py").write_text("NEW = 2\n")
        forget_sources()
        assert identity.fingerprint("own_machines.machine:Own") != before


@pytest.mark.parametrize(
    "statement",
    ["from ._fast import f", "from own_alone.sub import x", "from .broken.sub import y"],
)
def test_an_import_that_fails_and_is_caught_is_left_out(tmp_path, monkeypatch, statement):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "own_guarded"
    (package / "broken").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "broken" / "__init__.py").write_text("raise ImportError('no GPU')\n")
    for path in (tmp_path / "own_alone.py", package / "machine.py"):
        path.write_text(f"try:\n    {statement}\nexcept ImportError:\n    pass\n")
    forget_sources()
    for module in ("own_alone", "own_guarded.machine"):
        assert len(identity.module_fingerprint(module)) == 12


def forget_sources():
    for cached in (identity.module_fingerprint, identity.source_of):
        cached.cache_clear()


STEPS = """
from sklearn.preprocessing import FunctionTransformer, StandardScaler
class Scale(StandardScaler):
    factor = 1
"""


def test_other_sources_of_a_step_run_its_jobs_again_on_request(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_steps.py").write_text(STEPS)
    [job, *_] = make_jobs(1)
    steps = parse_steps(["own_steps.Scale", "sklearn.preprocessing.MinMaxScaler"])
    job = replace(job, dataset=replace(job.dataset, preprocess=steps))
    store = RecordStore.create(tmp_path / "run", "name: small\n")
    forget_sources()
    lines_of([job], store)
    code = store.read(job.key)["code"]
    assert len(code["steps"]) == 12 and code == identity.identity(job)
    assert lines_of([job], store, rerun="changed")[0].done == 0
    (tmp_path / "own_steps.py").write_text(STEPS.replace("1", "2"))
    forget_sources()
    assert any("--rerun changed" in line for line in lines_of([job], store)[1])
    assert lines_of([job], store, rerun="changed")[0].done == 1


def test_jobs_with_parameters_of_other_sources_run_again_too(tmp_path, monkeypatch):
    jobs = make_jobs(1)
    [child] = [job for job in jobs if job.parents]
    parent = next(job for job in jobs if job.key in child.parents)
    child = replace(child, machine="rmm", params=())
    store = RecordStore.create(tmp_path / "run", "name: small\n")
    lines_of([parent, child], store)
    real = identity.fingerprint
    changed = {parent.machine: "other"}
    monkeypatch.setattr(identity, "fingerprint", lambda name: changed.get(name) or real(name))
    again, _ = lines_of([parent, child], store, rerun="changed")
    assert (again.done, again.reused) == (2, 0)


def test_a_job_whose_parent_has_other_parameters_now_runs_again_on_request(tmp_path):
    [parent, child] = make_jobs(1)
    store = RecordStore.create(tmp_path / "run", "name: small\n")
    lines_of([parent, child], store)
    assert lines_of([parent, child], store, rerun="changed")[0].reused == 2
    record, arrays = dict(store.read(parent.key)), dict(store.arrays(parent.key))
    store.set_aside(parent.key)
    record["selection"]["params"]["C"] = 11 - record["selection"]["params"]["C"]
    store.write(record, arrays)
    assert any("parameters of such jobs" in line for line in lines_of([parent, child], store)[1])
    again, _ = lines_of([parent, child], store, rerun="changed")
    assert (again.done, again.reused) == (1, 1)
    assert store.read(child.key)["selection"]["params"] == record["selection"]["params"]
    assert lines_of([parent, child], store, rerun="changed")[0].reused == 2


def test_the_fingerprint_of_scikit_learn_is_empty():
    assert identity.fingerprint("sklearn.svm:SVC") == ""


@pytest.mark.parametrize("version", ["1.2.0", "1.3.0"])
def test_the_fingerprint_of_an_installed_package_is_its_version(tmp_path, monkeypatch, version):
    folder = tmp_path / version / "site-packages"
    package, metadata = folder / "strangers_boost", folder / f"strangers_boost-{version}.dist-info"
    package.mkdir(parents=True)
    metadata.mkdir()
    (package / "__init__.py").write_text("from sklearn.svm import SVC\n\n\nclass Boost(SVC): ...\n")
    (metadata / "METADATA").write_text(f"Name: strangers-boost\nVersion: {version}\n")
    (metadata / "top_level.txt").write_text("strangers_boost\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "strangers_boost", raising=False)
    identity.module_fingerprint.cache_clear()
    assert identity.module_fingerprint("strangers_boost") == f"strangers-boost {version}"


def lines_of(jobs, store, **options):
    stream = io.StringIO()
    summary = run(
        jobs,
        store,
        SerialExecutor(),
        data=NO_DATA,
        progress=lambda total: Lines(total, stream),
        **options,
    )
    return summary, stream.getvalue().splitlines()


def test_a_record_names_its_code_and_all_parameters(tmp_path):
    jobs = make_jobs(1)
    store = RecordStore.create(tmp_path / "run", "name: small\n")
    lines_of(jobs, store)
    record = store.read(jobs[0].key)
    assert record["code"] == identity.identity(jobs[0])
    left_out = identity.EXECUTION | identity.PREDICTION
    assert set(record["parameters"]) == set(SVM().get_params()) - left_out
    assert record["parameters"]["C"] == record["selection"]["params"]["C"]


def test_parameters_that_change_no_fit_are_left_out():
    plain = identity.parameters_of(SVM())
    assert identity.parameters_of(SVM(decision_function_shape="ovo", break_ties=True)) == plain
    assert identity.parameters_of(SVM(max_iter=100)) == {**plain, "max_iter": 100}
    theirs = identity.parameters_of(machine_class("sklearn.svm:SVC")())
    assert {"max_iter", "break_ties", "decision_function_shape"} <= set(theirs)


def test_defaults_of_the_steps_of_a_pipeline_are_parameters():
    pipe = make_pipeline(StandardScaler(), KNeighborsClassifier())
    steps = identity.parameters_of(pipe)["steps"]
    assert json.loads(json.dumps(steps)) == steps
    assert [name for name, _ in steps] == ["standardscaler", "kneighborsclassifier"]
    (_, scaler), (_, neighbours) = (step for _, step in steps)
    assert scaler["with_mean"] is True and neighbours["n_neighbors"] == 5
    assert "n_jobs" not in neighbours, "it changes no result"


def test_long_or_close_arrays_among_the_parameters_are_told_apart():
    def parameters(weights):
        return identity.parameters_of(FunctionTransformer(np.multiply, kw_args={"x2": weights}))

    weights = np.linspace(0, 1, 5000)
    for change in (np.where(np.arange(5000) == 2500, 7.0, weights), weights * (1 + 1e-12)):
        assert parameters(weights.copy()) == parameters(weights) != parameters(change)
    assert parameters(weights[:2] * [1, np.nan])["kw_args"] == {"x2": [0.0, "nan"]}


FACTORY = """
import numpy as np
from functools import partial
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

def double(X, factor=2):
    return factor * X

def distance(u, v, p=1):
    return (abs(u - v) ** p).sum()

def model():
    weights = {"metric": [partial(distance, p=2), distance], "n_neighbors": [1, 3]}
    search = GridSearchCV(KNeighborsClassifier(metric=distance), weights)
    words = FunctionTransformer(double, kw_args={"factor": {"one", "two", "three", "four"}})
    steps = SimpleImputer(), words, SelectKBest(k=3)
    return make_pipeline(*steps, FunctionTransformer(np.random.RandomState(0).permutation), search)
"""

KEYS = """
import sys
from pathlib import Path
from mmbench.config.plan import plan
from mmbench.config.read import config_of
column = {"estimator": "own_factory.model"}
config = {"name": "own", "datasets": ["wine"], "kernel": "linear", "machines": {"own": column}}
config |= {"protocol": {"test": {"kfold": 3}}}
[job, *_] = plan(config_of(config, Path("own.yaml")), Path())
print(job.key, job.defaults)
"""


def test_odd_parameters_give_the_same_keys_in_all_processes(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_factory.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(KEYS, {})
    one = capsys.readouterr().out
    other = subprocess.check_output([sys.executable, "-c", KEYS], text=True)
    assert one == other and " at 0x" not in one
    assert "'own_factory.distance'" in one and "'missing_values': 'nan'" in one


def test_a_changed_default_runs_the_job_again_and_is_named(tmp_path):
    store = RecordStore.create(tmp_path / "run", "name: small\n")
    jobs = [replace(job, defaults=(("tol", 1e-5),)) for job in make_jobs(1)[:1]]
    lines_of(jobs, store)
    changed = [replace(job, defaults=(("tol", 1e-4),)) for job in jobs]
    summary, said = lines_of(changed, store)
    assert (summary.done, summary.reused) == (1, 0)
    assert "svm: default tol=1e-05, 0.0001 today: 1 finished jobs run again" in said
    raised = [replace(changed[0], machine_version=9)]
    summary, said = lines_of(raised, store)
    assert summary.done == 1
    assert any("version 1 of the machine, 9 today: 1 finished" in line for line in said), said


def test_other_sources_are_named_and_run_again_on_request(tmp_path, monkeypatch):
    jobs = make_jobs(1)[:1]
    store = RecordStore.create(tmp_path / "run", "name: small\n")
    lines_of(jobs, store)
    monkeypatch.setattr("mmbench.jobs.identity.fingerprint", lambda machine: "other")
    summary, said = lines_of(jobs, store)
    assert summary.reused == 1 and any("--rerun changed" in line for line in said)
    summary, said = lines_of(jobs, store, rerun="changed")
    assert (summary.done, summary.reused) == (1, 0)
    aside = store.folder / "records" / "superseded"
    assert {path.name for path in aside.iterdir()} == {
        f"{jobs[0].key}{s}" for s in (".json", ".npz")
    }


def test_a_job_of_other_sources_is_not_reported_as_one_with_other_defaults(tmp_path, monkeypatch):
    store = RecordStore.create(tmp_path / "run", "name: small\n")
    job = make_jobs(1)[0]
    before, today = (replace(job, defaults=(("tol", tol),)) for tol in (1e-5, 1e-4))
    lines_of([before], store)
    lines_of([today], store)
    monkeypatch.setattr("mmbench.jobs.identity.fingerprint", lambda machine: "other")
    summary, said = lines_of([today], store, rerun="changed")
    assert summary.done == 1 and not any("default tol" in line for line in said), said


def test_a_plan_has_the_defaults_of_every_estimator(tmp_path):
    config = config_of(
        {
            "name": "own",
            "datasets": ["wine"],
            "kernel": "linear",
            "protocol": {"test": {"kfold": 3}},
            "machines": {
                "mmrm": {"params": {"tol": 1e-5}},
                "logistic": {"estimator": "sklearn.linear_model.LogisticRegression"},
            },
        },
        tmp_path / "own.yaml",
    )
    jobs = {job.column: job for job in plan(config, tmp_path)}
    assert dict(jobs["mmrm"].defaults)["C_factor"] == 10.0
    assert "tol" not in dict(jobs["mmrm"].defaults) and "gamma" not in dict(jobs["mmrm"].defaults)
    assert dict(jobs["logistic"].defaults)["max_iter"] == 100


def test_a_list_among_the_defaults_is_not_named_unless_it_changed(tmp_path):
    store, job = RecordStore.create(tmp_path / "run", "name: small\n"), make_jobs(1)[0]
    for tol in (1e-5, 1e-4):
        defaults = (("layers", [100]), ("tol", tol))
        _, said = lines_of([replace(job, defaults=defaults)], store)
    assert "svm: default tol=1e-05, 0.0001 today: 1 finished jobs run again" in said
