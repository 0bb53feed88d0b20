"""Plans: order, inheritance, grids and the examples that users start from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.examples import examples
from helpers.planned import CONFIGS, config_names, full_plan, load
from hypothesis import given, settings
from hypothesis import strategies as st

from mmbench.commands.experiments import keep_only
from mmbench.config.files import find_config
from mmbench.config.grids import n_points
from mmbench.config.model import Config
from mmbench.config.plan import plan, plan_of
from mmbench.config.read import config_of, load_config, to_yaml
from mmbench.config.smoke import smoke
from mmbench.errors import UserError
from mmbench.jobs.job import Job
from mmbench.jobs.planned import key_of
from mmbench.machines import MMRM, alias_of

#: A configuration with comments.
EXAMPLE = """\
name: usps_rbf
datasets: [usps]                       # card names, or {path: my.csv, target: label}
preprocess: none                       # none | standard | minmax | unit_norm | pca: 80 ...
kernel: rbf
protocol: {test: official, repeats: 1, seed: 0}
select: {folds: 5}
machines:
  svm:  {grid: {C: [1, 10, 100], gamma: [0.004, 0.0078, 0.0156]}}
  rmm:  {use: svm, grid: {B: auto}}    # takes svm's selected C and gamma, tunes B
  mmrm: {use: svm}                     # takes svm's selected C and gamma
layout: mmrm_table2
"""


def config_from(text: str, folder: Path) -> Config:
    path = folder / "config.yaml"
    path.write_text(text)
    return load_config(path)


def offline_plan(config: Config, folder: Path):
    return plan(config, folder / "store", None, allow_network=False)


def by_machine(jobs) -> dict:
    return {job.column: job for job in jobs}


def test_a_configuration_with_comments_is_valid(tmp_path: Path):
    jobs = by_machine(offline_plan(config_from(EXAMPLE, tmp_path), tmp_path))
    assert list(jobs) == ["svm", "rmm", "mmrm"]
    assert jobs["svm"].grid == (("C", (1, 10, 100)), ("gamma", (0.004, 0.0078, 0.0156)))
    assert jobs["rmm"].parent == jobs["mmrm"].parent == jobs["svm"].key
    assert dict(jobs["rmm"].params) == {"B": None}
    assert [name for name, _ in jobs["rmm"].grid] == ["B_fraction"]
    assert jobs["mmrm"].grid == ()


def test_a_version_rises_for_the_kernel_whose_results_changed(tmp_path: Path):
    """Records of the kernels whose results have not changed stay valid."""
    both = EXAMPLE.replace("kernel: rbf", "kernel: [linear, rbf]")
    jobs = offline_plan(config_from(both, tmp_path), tmp_path)
    versions = {
        kernel: {job.column: job.machine_version for job in jobs if job.kernel == kernel}
        for kernel in ("linear", "rbf")
    }
    assert versions["linear"]["svm"] > versions["rbf"]["svm"]
    assert versions["linear"]["rmm"] > versions["rbf"]["rmm"]
    assert versions["linear"]["mmrm"] == versions["rbf"]["mmrm"] > MMRM.version


def test_a_version_rises_for_the_alias_whose_results_changed(tmp_path: Path):
    text = EXAMPLE.partition("machines:")[0] + "machines: {rmm: {}, rmm_b1: {}}\n"
    jobs = by_machine(offline_plan(config_from(text, tmp_path), tmp_path))
    rise = jobs["rmm_b1"].machine_version - jobs["rmm"].machine_version
    assert rise == alias_of("rmm_b1").version > 0


def test_documented_keys_are_valid_and_complete(tmp_path: Path):
    text = (CONFIGS / "README.md").read_text().partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "my.csv").write_text("a,label\n1,x\n2,y\n")
    config = config_from(text, tmp_path)
    assert set(yaml.safe_load(text)) == set(Config.model_fields)
    assert len(offline_plan(config, tmp_path)) == 3 * 50 * (2 + 3 + 2 * 2)


def test_the_example_for_own_data_is_valid(tmp_path: Path):
    page = CONFIGS.parent / "docs" / "own_table.md"
    text = page.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "my.csv").write_text("a,label\n1,x\n2,y\n")
    jobs = by_machine(offline_plan(config_from(text, tmp_path), tmp_path))
    assert list(jobs) == ["svm", "rmm", "mmrm", "rf"]
    assert dict(jobs["mmrm"].params)["C"] is None


@pytest.mark.parametrize("name", config_names())
def test_configs_of_the_repository_are_valid_and_survive_yaml(name: str, tmp_path: Path):
    config = load(name)
    assert config.name == name
    for version in (config, smoke(config)):
        assert config_from(to_yaml(version), tmp_path) == version


@pytest.mark.parametrize("name", config_names())
def test_parents_come_before_their_children(name: str):
    source = load(name).source
    seen = {job.key for job in full_plan(source.name)} if source else set()
    for job in full_plan(name):
        assert seen >= set(job.parents)
        assert job.key not in seen
        seen.add(job.key)


def test_figure_2_has_the_machine_of_table_2():
    names = ("mmrm_fig2", "usps_rbf", "mmrm_table2")
    figure, table, both = ({job.key for job in full_plan(name)} for name in names)
    assert figure < table < both


def test_keys_do_not_depend_on_the_order_of_keys_or_values(tmp_path: Path):
    content = yaml.safe_load(EXAMPLE)
    content["machines"]["svm"]["grid"] = {"gamma": [0.0156, 0.004, 0.0078], "C": [100, 1.0, 10]}
    shuffled = yaml.safe_dump(dict(reversed(content.items())), sort_keys=False)
    one = offline_plan(config_from(EXAMPLE, tmp_path), tmp_path)
    other = offline_plan(config_from(shuffled, tmp_path), tmp_path)
    assert [job.key for job in one] == [job.key for job in other]


def test_keys_do_not_depend_on_the_order_of_classes(tmp_path: Path):
    keys = []
    for classes in (["class_0", "class_2"], ["class_2", "class_0"]):
        content = yaml.safe_load(EXAMPLE) | {"datasets": [{"name": "wine", "classes": classes}]}
        content |= {"protocol": {"test": {"kfold": 2}}, "layout": "generic"}
        jobs = offline_plan(config_of(content, tmp_path / "own.yaml"), tmp_path)
        keys.append([job.key for job in jobs])
    assert keys[0] == keys[1]


def test_name_and_layout_are_no_part_of_a_key(tmp_path: Path):
    one = offline_plan(config_from(EXAMPLE, tmp_path), tmp_path)
    text = EXAMPLE.replace("name: usps_rbf", "name: other").replace("mmrm_table2", "generic")
    other = offline_plan(config_from(text, tmp_path), tmp_path)
    assert [job.key for job in one] == [job.key for job in other]
    assert {job.experiment for job in other} == {"other"}


SMALL = """\
name: small
datasets: [wine]
kernel: KERNEL
protocol: {test: PROTOCOL}
machines:
  svm: {grid: {C: [1, 10], gamma: [0.1, 1]}}
  rmm: {use: svm, grid: {B: auto}}
"""


@settings(max_examples=25, deadline=None)
@given(
    kernels=st.lists(st.sampled_from(["rbf", "linear", "poly"]), min_size=1, unique=True),
    folds=st.integers(2, 7),
    repeats=st.integers(1, 3),
)
@examples(kernels=(["rbf"], ["poly", "linear"]), folds=(2, 7, 3), repeats=(3, 1))
def test_every_combination_has_one_job(tmp_path_factory, kernels, folds, repeats):
    folder = tmp_path_factory.mktemp("plan")
    kernels = sorted({"rbf", *kernels})
    text = SMALL.replace("KERNEL", str(kernels))
    text = text.replace("PROTOCOL", f"{{kfold: {folds}}}, repeats: {repeats}")
    jobs = offline_plan(config_from(text, folder), folder)
    assert len({job.key for job in jobs}) == len(jobs) == len(kernels) * folds * repeats * 2


def test_parameters_without_effect_are_left_out(tmp_path: Path):
    text = SMALL.replace(
        "KERNEL", "[linear, rbf, poly]\ndegree: [2, 3]\ngamma_scaling: per_feature"
    )
    jobs = offline_plan(config_from(text.replace("PROTOCOL", "{kfold: 2}"), tmp_path), tmp_path)
    svm = {(job.kernel, job.degree): job for job in jobs if job.machine == "svm"}
    assert set(svm) == {("linear", None), ("rbf", None), ("poly", 2), ("poly", 3)}
    assert [name for name, _ in svm["linear", None].grid] == ["C"]
    assert [name for name, _ in svm["rbf", None].grid] == ["C", "gamma"]
    assert dict(svm["rbf", None].params) == {"gamma_scaling": "per_feature"}
    assert dict(svm["poly", 3].params) == {"degree": 3}


def test_fixed_parameters_are_inherited_but_not_those_that_the_child_searches(tmp_path: Path):
    text = """\
name: fixed
datasets: [wine]
protocol: {test: {kfold: 2}}
machines:
  svm: {params: {C: 10, gamma: 0.5, tol: 0.01}}
  rmm: {use: svm, params: {tol: 0.001}, grid: {C: [1, 2], B: auto}}
  mmrm: {use: svm, grid: {C: auto}}
"""
    jobs = by_machine(offline_plan(config_from(text, tmp_path), tmp_path))
    assert dict(jobs["rmm"].params) == {"B": None, "gamma": 0.5, "tol": 0.001}
    assert dict(jobs["mmrm"].params)["C"] is None
    assert [name for name, _ in jobs["mmrm"].grid] == ["C_factor"]


#: Keys of an experiment, entries of two machines, and the unit of each machine's gamma.
UNITS = [
    ("", "lssvm: {grid: {gamma: auto}}, mamc: {grid: {gamma: auto}}", ["variance"] * 2),
    ("", "svm: {grid: {gamma: auto}}, mmrm: {use: svm}", ["variance"] * 2),
    ("", "svm: {grid: {gamma: auto}}, mpm: {use: svm, grid: {gamma: [1, 2]}}", ["variance", None]),
    ("gamma_scaling: per_feature", "svm: {grid: {gamma: auto}}, m4: {}", ["per_feature"] * 2),
    (
        "",
        "klda: {params: {gamma_scaling: none}, grid: {gamma: auto}}, lssvm: {grid: {gamma: [1]}}",
        ["none", None],
    ),
]


@pytest.mark.parametrize(("keys", "machines", "units"), UNITS)
def test_the_automatic_widths_have_one_unit(keys, machines, units, tmp_path: Path):
    text = f"name: units\ndatasets: [wine]\nprotocol: {{test: {{kfold: 2}}}}\n{keys}\n"
    config = config_from(f"{text}machines: {{{machines}}}\n", tmp_path)
    jobs = by_machine(offline_plan(config, tmp_path)).values()
    assert [dict(job.params).get("gamma_scaling") for job in jobs] == units
    automatic = {dict(j.grid)["gamma"] for j in jobs if len(dict(j.grid).get("gamma", ())) > 2}
    assert automatic == {tuple(2.0**k for k in range(-7, 8, 2))}


def test_a_classifier_without_units_takes_no_automatic_width(tmp_path: Path):
    text = EXAMPLE.replace("gamma: [0.004, 0.0078, 0.0156]", "gamma: auto").replace(
        "  mmrm: {use: svm} ", "  svc: {estimator: sklearn.svm.SVC, use: svm}\n  mmrm: {use: svm} "
    )
    with pytest.raises(UserError, match=r"--set 'machines.svm.grid.gamma="):
        config_from(text, tmp_path)


def test_data_set_replaces_an_axis(tmp_path: Path):
    text = SMALL.replace("[wine]", "[wine, {name: iris, grid: {C: {log2: [0, 4, 2]}}}]")
    text = text.replace("KERNEL", "rbf").replace("PROTOCOL", "{kfold: 2}")
    jobs = offline_plan(config_from(text, tmp_path), tmp_path)
    grids = {job.dataset.name: dict(job.grid) for job in jobs if job.machine == "svm"}
    assert grids["wine"]["C"] == (1, 10)
    assert grids["iris"] == {"C": (1, 4, 16), "gamma": (0.1, 1)}


def test_user_data_are_found_from_the_folder_of_the_configuration(tmp_path: Path):
    (tmp_path / "mine.csv").write_text("a,label\n1,x\n2,y\n")
    text = SMALL.replace("[wine]", "[{path: mine.csv, target: label, preprocess: [standard]}]")
    text = text.replace("KERNEL", "rbf").replace("PROTOCOL", "{kfold: 2}")
    (job, *_) = offline_plan(config_from(text, tmp_path), tmp_path)
    assert job.dataset.name == "mine"
    assert job.dataset.path == str(tmp_path / "mine.csv")
    assert job.dataset.preprocess == (("standard", None),)
    (tmp_path / "mine.csv").write_text("a,label\n1,x\n3,y\n")
    (changed, *_) = offline_plan(config_from(text, tmp_path), tmp_path)
    assert changed.key != job.key


def test_numbers_are_those_of_yaml_1_2(tmp_path: Path):
    text = SMALL.replace("C: [1, 10]", "C: [1e-3, 010, 1E2]")
    text = text.replace("KERNEL", "rbf").replace("PROTOCOL", "{kfold: 2}")
    assert config_from(text, tmp_path).machines["svm"].grid["C"] == (0.001, 10, 100.0)


def test_only_keeps_the_machines_that_others_use():
    jobs = full_plan("quickstart")
    kept = keep_only(jobs, {"machine": {"rmm"}, "dataset": {"digits"}})
    assert {(job.dataset.name, job.machine) for job in kept} == {
        ("digits", "svm"),
        ("digits", "rmm"),
    }
    assert keep_only(jobs, {}) == jobs


def grid_points(job: Job) -> int:
    """Return the number of trainings of a job's search; 1 without a search."""
    return max(1, n_points(dict(job.grid), alias_of(job.machine).stages))


@pytest.mark.parametrize("name", config_names())
def test_smoke_is_smaller_and_never_shares_a_record(name: str, tmp_path: Path):
    config = load(name)
    full, small = full_plan(name), offline_plan(smoke(config), tmp_path)
    assert smoke(config).name == f"{name}-smoke"
    assert not {job.key for job in full} & {job.key for job in small}
    assert sum(map(grid_points, small)) < sum(map(grid_points, full))
    subsets = (300, 500, ("per_class", 50), ("nested", 250), ("nested", 500))
    assert all(grid_points(job) <= 8 and job.split.max_train in subsets for job in small)
    assert {(j.dataset.name, j.column) for j in small} == {(j.dataset.name, j.column) for j in full}


@pytest.mark.parametrize(
    ("sizes", "small"),
    [([100, 200, 900], [100, 200]), ([100, 900], [250, 500]), ([900], [500])],
    ids=str,
)
def test_smoke_has_the_two_smallest_sizes_unless_they_are_large(sizes, small, tmp_path: Path):
    protocol = {"test": {"kfold": 2}, "max_train": sizes}
    assert smoke(own_table(tmp_path, protocol=protocol)).protocol.max_train == small


def test_smoke_has_the_first_of_several_seeds(tmp_path: Path):
    protocol = {"test": {"kfold": 2}, "seed": [3, 1, 2]}
    assert smoke(own_table(tmp_path, protocol=protocol)).protocol.seed == [3]


@pytest.mark.parametrize("word", ["scale", "auto"])
def test_a_width_may_be_a_word_of_scikit_learn(word, tmp_path: Path):
    text = EXAMPLE.replace(
        "svm:  {grid: {C: [1, 10, 100], gamma: [0.004, 0.0078, 0.0156]}}",
        f"svm:  {{params: {{gamma: {word}}}, grid: {{C: [1, 10]}}}}",
    )
    jobs = by_machine(offline_plan(config_from(text, tmp_path), tmp_path))
    assert dict(jobs["svm"].params)["gamma"] == dict(jobs["rmm"].params)["gamma"] == word


def test_an_estimator_runs_once_whatever_the_kernels(tmp_path: Path):
    text = EXAMPLE.replace("kernel: rbf", "kernel: [linear, poly, rbf]\ndegree: [2, 3]")
    text = text.replace(
        "machines:\n", "machines:\n  nb: {estimator: sklearn.naive_bayes.GaussianNB}\n"
    )
    config = config_from(text, tmp_path)
    jobs = [job for job in offline_plan(config, tmp_path) if job.column == "nb"]
    assert len({job.key for job in jobs}) == len(jobs) == len({job.split.at for job in jobs})
    keys = {cell.key for cell in plan_of(config).cells if cell.key.machine == "nb"}
    assert keys == {key_of(job) for job in jobs}


def own_table(tmp_path: Path, **keys: Any) -> Config:
    """Write a table of 24 rows in two classes, and return a configuration that reads it."""
    rows = (f"{k},{k % 4},{k // 6},{k % 2}\n" for k in range(24))
    (tmp_path / "own.csv").write_text("x,z,patient,label\n" + "".join(rows))
    entry = {"path": "own.csv", "target": "label", **keys.pop("dataset", {})}
    content = {
        "name": "own",
        "datasets": [entry],
        "kernel": "linear",
        "protocol": {"test": {"kfold": 2}},
        "machines": {"svm": {}},
        **keys,
    }
    return config_of(content, tmp_path / "own.yaml")


@pytest.mark.parametrize(
    "keys, word",
    [
        ({"protocol": {"test": {"time_series": 3}}}, "time_series"),
        (
            {"protocol": {"test": {"kfold": 2}, "max_train": 8}, "select": {"validation": "rest"}},
            "rest",
        ),
    ],
)
def test_rules_that_would_divide_groups_are_refused(keys, word, tmp_path: Path):
    with pytest.raises(UserError, match=rf"datasets\[0\].groups: {word} would divide groups"):
        own_table(tmp_path, dataset={"groups": "patient"}, **keys)
    own_table(tmp_path, **keys)


@pytest.mark.parametrize(
    "keys",
    [
        {"classes": ["07", "08", "1e3"]},
        {"missing": ["099", "no"]},
        {"target": "08"},
        {"categorical": [{1: ["I", "II"]}]},
        {"preprocess": [{"divide": 1e-5}]},
    ],
)
def test_words_that_look_like_numbers_survive_yaml(keys, tmp_path: Path):
    config = own_table(tmp_path, dataset=keys)
    again = tmp_path / "again.yaml"
    again.write_text(to_yaml(config))
    assert load_config(again) == config


@pytest.mark.parametrize(("name", "rule"), [("toy_1", "predefined"), ("iris", "leave_one_out")])
def test_the_limit_of_jobs_holds_for_splits_that_are_counted_late(name, rule, tmp_path: Path):
    content = {
        "name": "many",
        "datasets": [name],
        "protocol": {"test": rule},
        "machines": {"svm": {}},
        "limits": {"jobs": 50},
    }
    config = config_of(content, tmp_path / "many.yaml")
    with pytest.raises(UserError, match=r"more than 50 jobs need --set limits.jobs=N"):
        plan(config, tmp_path, allow_network=False)


def test_a_machine_uses_an_estimator_at_every_degree(tmp_path: Path):
    other = {"estimator": "sklearn.svm.SVC", "grid": {"C": [1, 10]}}
    keys = {"kernel": "poly", "degree": [2, 3], "machines": {"rf": other, "svm": {"use": "rf"}}}
    jobs = plan(own_table(tmp_path, **keys), tmp_path, allow_network=False)
    estimators = {job.split: job.key for job in jobs if job.column == "rf"}
    users = [job for job in jobs if job.column == "svm"]
    assert len(users) == 4 and all(job.parent == estimators[job.split] for job in users)


def test_the_smoke_version_of_a_file_of_folds_with_one_split_is_valid(tmp_path: Path):
    (tmp_path / "folds.csv").write_text("test\n" * 8 + '""\n' * 16)
    config = own_table(tmp_path, dataset={"folds": "folds.csv"}, protocol={"test": "predefined"})
    assert len(plan(smoke(config), tmp_path, allow_network=False)) == 1


def test_a_folder_with_the_name_of_an_experiment_does_not_hide_it(tmp_path: Path, monkeypatch):
    (tmp_path / "quickstart").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_config("quickstart").name == "quickstart.yaml"
