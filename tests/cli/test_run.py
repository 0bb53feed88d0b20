"""``mmbench run`` on a person's own files: what is wrong with them, and what comes out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm as normal
from scipy.stats import t as student
from typer.testing import CliRunner

import mmbench
from mmbench.cli.app import app
from mmbench.commands.options import Options
from mmbench.resources import CONFIGS, REFERENCE
from mmbench.results.folder import read_reference

pytestmark = pytest.mark.usefixtures("one_process")

CONFIG = """\
name: mine
datasets: [{path: mine.csv, target: label}]
preprocess: minmax
protocol: {test: PROTOCOL}
select: {folds: 3}
machines:
  svm: {grid: {C: [1, 10], gamma: [0.1, 1]}}
"""


KNN = "knn: {estimator: sklearn.neighbors.KNeighborsClassifier, grid: {n_neighbors: [4, 6, 9]}}"


def good_rows(n: int = 40) -> list[str]:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, 2)) + np.repeat([[0.0], [2.0]], n // 2, axis=0)
    labels = ["yes"] * (n // 2) + ["no"] * (n // 2)
    return [f"{a:.3f},{b:.3f},{label}" for (a, b), label in zip(points, labels, strict=True)]


def write(folder: Path, rows: list[str], protocol: str = "{kfold: 2}") -> Path:
    (folder / "mine.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
    path = folder / "mine.yaml"
    path.write_text(CONFIG.replace("PROTOCOL", protocol))
    return path


def run(path: Path, *options: str):
    results = str(path.parent / "results")
    return CliRunner().invoke(
        app, ["run", str(path), "--results", results, "--jobs", "1", *options]
    )


BAD_DATA = {
    "missing value": (["1,,yes"], ["mine.csv", "row 41", "'b'", "missing"]),
    "NaN": (["1,nan,yes"], ["mine.csv", "row 41", "'b'"]),
    "infinite": (["1,inf,yes"], ["mine.csv", "row 41", "'b'", "inf"]),
    "text": (["1,many,yes"], ["mine.csv", "row 41", "'b'", "many"]),
    "no label": (["1,2,"], ["mine.csv", "row 41", "'label'", "missing"]),
    "rare class": (["1,2,perhaps"], ["mine", "perhaps", "1"]),
    "ragged": (["1,2,3,yes"], ["mine.csv"]),
}


def refused(path: Path, *options: str) -> str:
    """Return the one line with which a run is refused that makes nothing."""
    before = sorted(path.parent.rglob("*"))
    result = run(path, *options)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert sorted(path.parent.rglob("*")) == before
    return line


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_are_one_line_and_nothing_is_made(name: str, tmp_path: Path):
    rows, words = BAD_DATA[name]
    line = refused(write(tmp_path, good_rows() + rows))
    assert [word for word in words if word not in line] == [], line


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], ["mine.csv"]),
        (["1,2,yes", "3,4,yes", "5,6,yes"], ["mine.csv", "only the class yes"]),
        (["1,2,yes", "3,4,yes", "1,2,no", "3,4,no"], ["no has 1 rows", "3 folds of 'select'"]),
    ],
)
def test_too_few_data(rows: list[str], words: list[str], tmp_path: Path):
    path = write(tmp_path, rows)
    line = refused(path)
    assert [word for word in words if word not in line] == [], line
    assert refused(path, "--dry-run") == line


def test_too_few_rows_to_calibrate_end_the_run_before_any_job(tmp_path: Path):
    path = write(tmp_path, good_rows())
    grid = "{grid: {C: [1, 10], gamma: [0.1, 1]}}"
    path.write_text(path.read_text().replace(grid, "{calibrate: sigmoid}"))
    line = refused(path, "--set", "select.folds=11")
    assert "has 10 rows, fewer than 11 folds of 'calibrate'" in line
    assert "; --set select.folds=10, or leave out 'calibrate'" in line


def test_what_a_run_cannot_use_is_one_line_and_left_alone(tmp_path: Path):
    path = write(tmp_path, good_rows(), "{holdout: 0.001}")
    assert "leaves no test row" in refused(path)
    path.write_text(path.read_text().replace("target: label", "target: lable"))
    assert "did you mean 'label'?" in refused(path)
    path = write(tmp_path, good_rows())
    (tmp_path / "results").write_text("a file")
    assert "is a file" in refused(path)
    (tmp_path / "results").unlink()
    (tmp_path / "results" / "mine").mkdir(parents=True)
    (tmp_path / "results" / "mine" / "thesis.tex").write_text("precious")
    assert "not a results folder" in refused(path)


@pytest.mark.parametrize("name", [".DS_Store", "._plan.json", "Thumbs.db", ".nfs000000"])
def test_a_results_folder_with_files_of_the_system_is_restored(tmp_path: Path, name: str):
    path = write(tmp_path, good_rows())
    folder = tmp_path / "results" / "mine"
    assert run(path).exit_code == 0
    (folder / "experiment.yaml").unlink()
    for part in (folder, folder / "records"):
        (part / name).write_text("")
    result = run(path)
    assert result.exit_code == 0, result.stderr
    assert (folder / "experiment.yaml").is_file()
    assert "of other settings" not in result.stderr


def test_a_persons_own_experiment_yaml_is_no_results_folder(tmp_path: Path):
    path = write(tmp_path, good_rows()).rename(tmp_path / "experiment.yaml")
    path.write_text("# precious\n" + path.read_text().replace("mine\n", f"{tmp_path.name}\n", 1))
    before = path.read_text()
    result = CliRunner().invoke(app, ["run", str(path), "--results", str(tmp_path.parent)])
    assert result.exit_code == 2
    assert "holds 'experiment.yaml' but no records; choose another with --results" in result.stderr
    assert path.read_text() == before
    assert str(Path("results", tmp_path.name)) in run(path).stderr


def test_dry_run_counts_and_writes_nothing(tmp_path: Path):
    result = run(write(tmp_path, good_rows()), "--dry-run")
    assert result.exit_code == 0
    first, _, line, memory, time = result.stdout.splitlines()
    assert first == "mine: 2 jobs, 0 of them stored"
    # 4 points x 3 folds and the final training, of one pair in two splits
    assert line.split()[:7] == ["mine", "rbf", "svm", "2", "0", "4", "26"]
    assert memory.startswith("largest job: about")
    assert time.startswith("time: unknown")
    assert not (tmp_path / "results").exists()


def test_dry_run_counts_the_fits_of_repeated_selections(tmp_path: Path):
    result = run(write(tmp_path, good_rows()), "--dry-run", "--set", "select.repeats=5")
    line = result.stdout.splitlines()[2]
    # 4 points x 3 folds x 5 repeats and the final training, in two splits
    assert line.split()[:7] == ["mine", "rbf", "svm", "2", "0", "4", "122"]


def test_dry_run_of_a_bad_file_says_what_is_wrong(tmp_path: Path):
    assert "row 41" in refused(write(tmp_path, [*good_rows(), "1,many,yes"]), "--dry-run")


def test_dry_run_estimates_memory_and_time_without_data(tmp_path: Path):
    result = run(
        CONFIGS / "usps_rbf.yaml",
        "--dry-run",
        "--data",
        str(tmp_path / "store"),
        "--results",
        str(tmp_path),
    )
    _, _, line, *_, memory, time, _, _ = result.stdout.splitlines()
    # 45 pairs, 30 points x 5 folds and the final training
    assert line.split()[:7] == ["usps", "rbf", "svm", "1", "0", "30", str(45 * 151)]
    assert memory.startswith("largest job: about")
    assert "by the reference run" in time
    assert not (tmp_path / "store").exists()


def test_dry_run_states_the_detectable_difference_by_the_reference_splits(tmp_path: Path):
    lines = run(
        CONFIGS / "quickstart.yaml", "--dry-run", "--results", str(tmp_path)
    ).stdout.splitlines()
    (k,) = [k for k, line in enumerate(lines) if "detectable difference" in line]
    assert "power 0.8; variances of the reference table" in lines[k]
    pairs = read_reference(REFERENCE / "quickstart").stored_pairs
    pairs = pairs[(pairs.dataset == "wdbc") & (pairs.machine_a == "svm")]
    sizes = (student(pairs.df).ppf(0.975) + normal().ppf(0.8)) * pairs.se
    low, high = (f"{size:.2g}" for size in sorted(sizes))
    assert lines[k + 1] == f"  wdbc: {low} to {high} % (5 splits)"


def test_dry_run_bounds_the_detectable_difference_on_an_official_test_part(tmp_path: Path):
    """The standard error is that of McNemar's test, stored with the reference."""
    lines = run(CONFIGS / "usps_rbf.yaml", "--dry-run", "--results", str(tmp_path)).stdout
    lines = lines.splitlines()
    (k,) = [k for k, line in enumerate(lines) if "detectable difference" in line]
    pairs = read_reference(REFERENCE / "usps_rbf").stored_pairs
    se = pairs[pairs.machine_a == "svm"].se
    z = 1.959964 + 0.841621
    ends = dict.fromkeys(f"{z * end:.2g}" for end in (se.min(), se.max()))
    assert lines[k + 1] == f"  usps: {' to '.join(ends)} % (2007 test rows)"


def test_run_resume_table_and_repair(tmp_path: Path):
    rows = [f"{row[: row.rindex(',')]},7,{row[row.rindex(',') + 1 :]}" for row in good_rows()]
    path = write(tmp_path, rows)
    text = (tmp_path / "mine.csv").read_text()
    (tmp_path / "mine.csv").write_text(text.replace("a,b,label", "a,b,c,label", 1))
    result = run(path)
    assert result.exit_code == 0, result.stderr
    assert "warning: constant columns: 'c'" in result.stderr
    assert "2 jobs done, 0 done before" in result.stderr
    plan = run(path, "--dry-run").stdout
    assert "2 of them stored" in plan
    assert plan.endswith("time: none\n")

    table = CliRunner().invoke(app, ["table", str(tmp_path / "results"), "--format", "csv"])
    assert table.exit_code == 0
    assert "mine,rbf" in table.stdout

    records = sorted((tmp_path / "results" / "mine" / "records").glob("*.json"))
    records[0].write_text("{")
    assert "by earlier records" in run(path, "--dry-run").stdout
    (tmp_path / "results" / "mine" / "plan.json").write_text("{")
    again = run(path)
    assert again.exit_code == 0, again.stderr
    assert "plan.json is damaged (not complete JSON); it is replaced" in again.stderr
    assert "1 jobs done, 1 done before" in again.stderr
    assert "quarantine" in again.stderr


def test_only_that_leaves_nothing(tmp_path: Path):
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    text = "name: NAME\ndatasets: [DATA]\nprotocol: {test: {kfold: 2}}\nmachines:\n  MACHINE:\n"
    for path, data, machine in ((one, "wine", "svm"), (other, "iris", "mmrm")):
        named = text.replace("NAME", path.stem).replace("DATA", data)
        path.write_text(named.replace("MACHINE", machine))
    both = (str(other), "--only", "machine=svm", "--dry-run")
    assert run(one, *both).stdout.startswith("one: 2 jobs")
    assert "other" not in run(one, *both).stdout
    result = run(one, *both, "--only", "dataset=iris")
    assert result.exit_code == 2
    assert "no job is left" in result.stderr


def test_number_of_processes_is_at_least_one_and_at_most_what_the_system_allows(monkeypatch):
    assert Options().slots >= 1
    assert Options(jobs=3).slots == 3
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # stands for the quota of a container
    assert Options().slots == 1


@pytest.mark.parametrize(
    ("machine", "widened"),
    [
        ("svm: {grid: {C: [1, 10], gamma: [1e3, 1e4, 1e5]}}", "gamma=[10, 100, 1000, 10000, "),
        ("svm: {grid: {C: [1, 10], gamma: [0.1, 1]}}", ""),  # both values are ends
        ("svm: {grid: {C: [1, 10], gamma: [1e-6, 0.5, 1e6]}}", ""),
        ("mmrm: {grid: {C_factor: [1.2, 2, 3]}}", ""),  # w = 0 is optimal below 1
        ("mmrm: {grid: {C_factor: [6, 9, 27]}}", "C_factor=[2.666666667, 4, 6, 9, 27, "),
        # a classifier of another package; no neighbour is 2.7 rows
        (KNN, "n_neighbors=[2, 3, 4, 6, 9, 14, 20]"),
    ],
)
def test_a_run_says_which_grid_to_widen(machine: str, widened: str, tmp_path: Path):
    path = write(tmp_path, good_rows())
    head, _, _ = path.read_text().partition("  svm: ")
    path.write_text(f"{head}  {machine}\n")
    output = run(path).output
    assert ("lie at an end of its grid" in output) == bool(widened)
    assert widened in output


def test_a_grid_of_words_and_numbers_has_no_ends(tmp_path: Path):
    path = write(tmp_path, good_rows())
    head, _, _ = path.read_text().partition("machines:")
    svc = "{estimator: sklearn.svm.SVC, kernel: rbf, grid: {gamma: [scale, 0.1, 10]}}"
    path.write_text(f"{head}machines: {{svc: {svc}}}\n")
    result = run(path)
    assert result.exit_code == 0 and "end of its grid" not in result.output


def test_the_last_line_counts_doubtful_jobs_and_records_of_other_settings(tmp_path: Path):
    path = write(tmp_path, good_rows())
    head, _, _ = path.read_text().partition("machines:")
    path.write_text(head + "machines: {mmrm: {params: {C: 1.0e-6}}}\n")  # below its bound
    result = run(path)
    assert result.exit_code == 0
    assert "2 with fits that are not optimal (2 unbounded)" in result.stderr.splitlines()[-1]
    assert "other settings" not in result.stderr

    assert run(path, "--strict").exit_code == 1  # the same records
    path.write_text(path.read_text().replace("1.0e-6", "2.0e-6"))
    assert "2 records are of other settings" in run(path).stderr.splitlines()[-2]


def test_after_an_edit_the_table_is_that_of_the_new_settings_and_the_old_can_be_removed(tmp_path):
    run(write(tmp_path, good_rows()))
    run(write(tmp_path, good_rows(), "{kfold: 4}"))
    folder = tmp_path / "results" / "mine"
    text = CliRunner().invoke(app, ["table", str(tmp_path / "results")]).stdout
    assert "standard error over 4" in text
    assert "Records of other settings or earlier versions left out: 2" in text
    for arguments, verb in (([], "would be removed"), (["--yes"], "removed")):
        cleaned = CliRunner().invoke(app, ["clean", str(folder), *arguments])
        assert cleaned.stdout.rstrip().endswith(verb)
    shown, again = CliRunner().invoke(app, ["table", str(folder)]), run(tmp_path / "mine.yaml")
    assert (shown.exit_code, again.exit_code) == (0, 0)
    assert "left out" not in shown.stdout and "of other settings" not in again.output


def test_calibrated_machines_have_a_log_loss(tmp_path: Path):
    path = write(tmp_path, good_rows())
    asked = "  lssvm: {grid: {C: [1, 10]}, calibrate: sigmoid}\nmetrics: [accuracy, log_loss]\n"
    path.write_text(path.read_text().replace("  svm: {", "  svm: {calibrate: sigmoid, ") + asked)
    assert run(path).exit_code == 0
    results = tmp_path / "results" / "mine"
    text = CliRunner().invoke(app, ["table", str(results), "--format", "csv"]).output
    rows = [line.split(",") for line in text.splitlines()]
    losses = [row for row in rows if "log_loss" in row]
    assert len(losses) == 2
    shown = CliRunner().invoke(app, ["table", str(results)]).output
    assert "Probabilities, calibrated on each training part: SVM: sigmoid, 3 folds;" in shown
    assert "lack probabilities" not in shown


def test_dry_run_compares_classifiers_of_other_packages_and_no_machine_of_the_past(tmp_path):
    """A record of a classifier of another package names no kernel."""
    path = write(tmp_path, good_rows(), "{kfold: 5}")
    base = path.read_text().partition("machines:")[0]
    foreign = "machines:\n  svm: {params: {C: 1, gamma: 100}}\n"
    foreign += "  nb: {estimator: sklearn.naive_bayes.GaussianNB}\n"
    path.write_text(base + foreign + "  old: {machine: svm, params: {C: 1e-3, gamma: 1}}\n")
    assert run(path).exit_code == 0
    path.write_text(base + foreign)
    (line,) = [x for x in run(path, "--dry-run").stdout.splitlines() if "splits)" in x]
    rows = mmbench.load(tmp_path / "results" / "mine", predictions=True)
    right = rows.assign(right=rows.label == rows.predicted).pivot_table(
        "right", ["fold", "row"], "machine", aggfunc="sum"
    )
    gaps = (right.nb - right.svm).astype(float)
    variance = (100 * gaps.groupby("fold").mean()).var()
    of_rows = 100**2 * (gaps.var(ddof=0) / len(gaps) + 2 / len(gaps) ** 2)
    whole = max(of_rows + variance / 5, variance * (1 / 5 + 1 / 4))
    df = 4 * (whole / max(variance / 5, whole - of_rows)) ** 2
    size = (student(df).ppf(0.975) + normal().ppf(0.8)) * np.sqrt(whole)
    assert line == f"  mine: {size:.2g} % (5 splits)"
