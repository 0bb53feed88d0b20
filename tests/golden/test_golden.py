"""Golden values: what every machine and every experiment gave when the files here were written.

``fits.csv`` has the certificates of all machines, kernels and solvers on small real data sets,
``tables`` the CSV table of each experiment's smoke run, without seconds. Code that is moved should
change none of them:

    python -m tests.golden.test_golden check --exact svm rmm quickstart

with names of machines, names of experiments, ``fits`` (all machines), ``quick`` (the experiments
that need no file) or ``tables`` (all experiments); ``fits quick`` if no name is given.

``--exact`` compares every digit: the same machine, one BLAS thread. Without it

- statuses are equal; objectives and bounds agree to 1e-6 relative or within the certified gaps;
  of fits that are not optimal the objectives agree to 1e-4; training errors differ by at most one
  row;
- tables have the same rows with the same text, the same selected parameters, and test errors that
  differ by at most one row per split: one row on the boundary is what rounding can move. Gaps,
  violations and numbers of support vectors belong to the solver and are not compared.

``write`` in place of ``check`` renews the values of the machines and experiments named; the diff
belongs in the commit that changes them.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import itertools
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import yaml
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner, Result

from mmbench.cli.app import app
from mmbench.datasets.load import load_dataset
from mmbench.errors import UserError
from mmbench.machines import make_machine

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FITS, TABLES = HERE / "fits.csv", HERE / "tables"
MIRROR = Path(os.environ.get("MMBENCH_MIRROR", ROOT.parent / "shared" / "data"))

RELATIVE, UNPROVEN, ABSOLUTE = 1e-6, 1e-4, 1e-12
#: Relative gap up to which a general solver may be inaccurate on one processor and not on another.
#: The linear programs of the MMRM are hard for solvers of cone programs.
GAPS = {"m4": 3e-6, "mmrm": 1e-3}


class Problem(NamedTuple):
    """Rows drawn by a fixed seed from some classes of a data set."""

    dataset: str
    rows: int
    classes: tuple = ()
    scaled: bool = True


EMBEDDED = {
    "breast_cancer": Problem("wdbc", 100),
    "digits_3_8": Problem("digits", 80, (3, 8)),
    "digits_4_9": Problem("digits", 40, (4, 9)),
    "iris": Problem("iris", 90),
    "wine": Problem("wine", 100, ("class_1", "class_2"), scaled=False),
}
MIRRORED = {
    "banana": Problem("ida_banana", 120),
    "german": Problem("german", 120),
    "heart": Problem("heart", 100),
    "heart_40": Problem("heart", 40),
    "ionosphere": Problem("ionosphere", 100),
    "pima": Problem("pima", 120),
    "sonar": Problem("sonar", 80),
    "thyroid_1_2": Problem("thyroid", 100, (1, 2)),
    "usps_3_5": Problem("usps", 80, (3, 5)),
}
PROBLEMS = EMBEDDED | MIRRORED
KERNELS = ("linear", "rbf", "poly")
#: Problems of the default test suite; slow tests have all of them.
DAILY = {name: PROBLEMS[name] for name in ("digits_3_8", "digits_4_9")}
NAMES = {
    "all": tuple(PROBLEMS),
    "few": ("digits_3_8", "iris", "heart", "pima"),
    "small": ("digits_4_9", "heart_40"),
}
#: Per machine: parameters, solvers and problems (or the name of some), each with all kernels.
CASES: dict[str, list[tuple[dict, str, str | list[str]]]]
CASES = yaml.safe_load((HERE / "cases.yaml").read_text())
#: (Machine, kernel, problem) whose result changes by more than the tolerances if features change by
#: rounding: F-SVM's problem is not convex, RMM's B follows from libsvm's solution, which depends on
#: the alignment of memory, others lie at the border of two statuses.
UNSTABLE = {
    ("fsvm", "poly", "german"),
    ("fsvm", "poly", "heart"),
    ("lssvm", "poly", "digits_3_8"),
    ("lssvm", "poly", "digits_4_9"),
    ("rmm", "linear", "pima"),
    ("rsvm_plus", "linear", "digits_4_9"),
}
UNSTABLE |= {(machine, "poly", "wine") for machine in CASES}  # kernel values up to 1e9
FIT_KEY = ["machine", "params", "solver", "kernel", "problem", "pair"]
FIT_COLUMNS = [*FIT_KEY, "status", "objective", "bound", "n_support", "errors", "decisions"]

EXPERIMENTS = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
#: Experiments that need no file.
QUICK = ["quickstart"]
#: Experiments whose smoke version is no quick check, and why.
LEFT_OUT = {
    "solvers": "its columns depend on the packages that are installed",
    "verdict": "half an hour, and data of the extra keel",
    "verdict_large": "half an hour",
}
TABLE_KEY = ["dataset", "kernel", "degree", "size", "machine", "metric"]
#: Other columns that rounding cannot change.
TEXT = ["n", "published", "published_spread", "status", "note"]
#: Columns that golden tables lack: marks follow from others, and every change of code has another
#: fingerprint.
LACKING = ["mark", "version", "fingerprint"]


def rows_of(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of a problem."""
    data = load_dataset(
        problem.dataset, store=HERE / "no-store", mirror=MIRROR, allow_network=False
    )
    labels = problem.classes or tuple(np.unique(data.y))
    rows = np.flatnonzero(np.isin(data.y, labels))
    rows = np.sort(np.random.RandomState(0).permutation(rows)[: problem.rows])
    X, y = np.asarray(data.X[rows], dtype=float), np.asarray(data.y)[rows]
    if problem.scaled:
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    return X, y


def fits_of(machine: str, problems: dict[str, Problem]) -> Iterator[dict[str, object]]:
    """Yield one row per binary training of a machine on the problems."""
    data = {name: rows_of(problem) for name, problem in problems.items()}
    for params, solvers, chosen in CASES[machine]:
        names = NAMES[chosen] if isinstance(chosen, str) else chosen
        for solver, kernel, name in itertools.product(solvers.split(), KERNELS, names):
            if name not in data or (machine, kernel, name) in UNSTABLE:
                continue
            if solver in ("ecos", "libsvm") and find_spec(solver) is None:
                continue
            case = {
                "machine": machine,
                "params": " ".join(f"{key}={value}" for key, value in params.items()),
                "solver": solver,
                "kernel": kernel,
                "problem": name,
            }
            estimator = make_machine(machine, **params, solver=solver, kernel=kernel)
            for fit in certificates(estimator, *data[name]):
                yield case | fit


def certificates(machine, X: np.ndarray, y: np.ndarray) -> list[dict[str, object]]:
    """Return one row per pair of classes; the status of a training that fails is its exception."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        try:
            machine.fit(X, y)
        except (ArithmeticError, RuntimeError, ValueError, UserError) as error:
            return [{"status": type(error).__name__}]
        decisions = hashlib.sha256(np.ascontiguousarray(machine.decision_function(X)).tobytes())
        errors = int((machine.predict(X) != y).sum())
    return [
        {
            "pair": "/".join(map(str, fit.pair)),
            "status": str(fit.status),
            "objective": float(fit.objective),
            "bound": float(fit.bound),
            "n_support": fit.n_support,
            "errors": errors,
            "decisions": decisions.hexdigest()[:12],
        }
        for fit in machine.fits_
    ]


def as_text(rows: Iterable[dict[str, object]]) -> pd.DataFrame:
    """Return rows as they are stored: every digit of every number."""
    text = [{name: str(value) for name, value in row.items()} for row in rows]
    return pd.DataFrame(text, columns=FIT_COLUMNS).fillna("")


def read(source: Path | io.StringIO) -> pd.DataFrame:
    """Return a CSV table as text."""
    return pd.read_csv(source, dtype=str, keep_default_na=False)


def differences(
    stored: pd.DataFrame,
    now: pd.DataFrame,
    key: list[str],
    changes: Callable[[dict[str, str], dict[str, str]], Iterable[str]] | None,
) -> list[str]:
    """Return a line per row that differs in the columns that `changes` names, or in any column."""
    old, new = (
        {tuple(row[column] for column in key): row for row in table.to_dict("records")}
        for table in (stored, now)
    )
    lines = []
    for row in [*old, *(row for row in new if row not in old)]:
        if row in old and row in new:
            was, is_ = old[row], new[row]
            names = changes(was, is_) if changes else [c for c in was if was[c] != is_[c]]
            text = ", ".join(f"{name} {was[name]} -> {is_[name]}" for name in names)
        else:
            text = "not in the golden file" if row in new else "gone"
        if text:
            lines.append(f"{' '.join(filter(None, row))}: {text}")
    return lines


def fit_differences(machine: str, problems: dict[str, Problem], exact: bool) -> list[str]:
    """Return a line per difference between a machine's fits and their golden values."""
    stored = read(FITS)
    stored = stored[(stored.machine == machine) & stored.problem.isin(problems)]
    lacking = [solver for solver in ("ecos", "libsvm") if find_spec(solver) is None]
    stored = stored[~stored.solver.isin(lacking)]
    now = as_text(fits_of(machine, problems))
    return differences(stored, now, FIT_KEY, None if exact else _fit_changes)


def _fit_changes(was: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    statuses = {was["status"], now["status"]}
    if len(statuses) > 1 and not (statuses == {"optimal", "inaccurate"} and _at_tolerance(now)):
        yield "status"
        return
    if not was["objective"]:  # the same exception
        return
    optimal = "optimal" in statuses  # the bound of another fit proves little
    gap = max(abs(float(row["objective"]) - float(row["bound"])) for row in (was, now))
    for name in ("objective", "bound") if optimal else ("objective",):
        old, new = float(was[name]), float(now[name])
        close = optimal or _at_tolerance(now)
        room = max(RELATIVE * abs(old), gap, ABSOLUTE) if close else UNPROVEN * abs(old)
        if old != new and not abs(old - new) <= room:
            yield name
    if abs(int(was["errors"]) - int(now["errors"])) > 1:
        yield "errors"


def _at_tolerance(fit: dict[str, str]) -> bool:
    """Whether the gap of a general solver is near its tolerance, so that rounding decides."""
    objective, bound = float(fit["objective"]), float(fit["bound"])
    most = GAPS.get(fit["machine"], 0.0) if fit["solver"] != "auto" else 0.0
    return abs(objective - bound) <= most * abs(objective)


def tables_of(names: list[str]) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Run smoke versions; return their tables, and a line per experiment that cannot run here."""
    if not names:
        return {}, []
    with tempfile.TemporaryDirectory() as folder:
        skipped = _run(names, folder)
        if not any(Path(folder).iterdir()):
            return {}, skipped
        done = mmbench_command("table", folder, "--format", "csv")
    assert done.exit_code == 0, done.stderr
    table = read(io.StringIO(done.stdout))
    table = table[~table.metric.str.startswith("seconds")].drop(columns=LACKING)
    table["experiment"] = table.experiment.str.removesuffix("-smoke")
    # a server that is down makes the jobs of its data set fail
    lost = table[table.note.str.contains("cannot be found or downloaded")]
    skipped += dict.fromkeys(f"{row.experiment}: {row.note}" for row in lost.itertuples())
    names = [name for name in names if name not in set(lost.experiment)]
    # notes are long: a ditto mark stands for the note of the row above
    table["note"] = table.note.mask((table.note != "") & (table.note == table.note.shift()), '"')
    parts = table[table.experiment.isin(names)].groupby("experiment")
    return {str(name): part.loc[:, (part != "").any()] for name, part in parts}, skipped


def unavailable(name: str) -> str:
    """Return why an experiment is not checked here, if it is not."""
    if name in LEFT_OUT:
        return f"{name}: {LEFT_OUT[name]}"
    path = TABLES / f"{name}.csv"
    if not MIRROR.exists() and path.exists() and read(path).dataset.str.startswith("ida_").any():
        return f"{name}: the mirror has other splits of the ida data sets than the internet"
    return ""


def _run(names: list[str], folder: str) -> list[str]:
    """Run smoke versions in one process; return a line per experiment that cannot be run here."""
    configs = [str(ROOT / "configs" / f"{name}.yaml") for name in names]
    done = mmbench_command("run", *configs, "--smoke", "--jobs", "1", "--results", folder)
    if done.exit_code != 2:  # a failed job has a record, which the table shows
        return []
    if len(names) == 1:
        return [f"{names[0]}: {done.stderr.splitlines()[-1]}"]
    return [line for name in names for line in _run([name], folder)]


def mmbench_command(*arguments: str) -> Result:
    """Run the command line in this process; its jobs have a worker."""
    mirror = {"MMBENCH_MIRROR": str(MIRROR)} if MIRROR.exists() else {}
    return CliRunner().invoke(app, arguments, env={"OMP_NUM_THREADS": "1", **mirror})


def table_differences(name: str, table: pd.DataFrame, exact: bool) -> list[str]:
    """Return a line per difference between an experiment's table and its golden table."""
    stored = read(TABLES / f"{name}.csv")
    columns = list(dict.fromkeys([*stored.columns, *table.columns]))
    stored, table = (t.reindex(columns=columns, fill_value="") for t in (stored, table))
    key = [column for column in TABLE_KEY if column in columns]
    return differences(stored, table, key, None if exact else _table_changes)


def _table_changes(was: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    yield from (name for name in TEXT if was.get(name) != now.get(name))
    metric = was["metric"]
    if metric == "errors_count":
        # rounding moves a test row or two over a boundary, as in `mmbench compare`
        if abs(float(was["measured"]) - float(now["measured"])) > 2:
            yield "measured"
    elif metric.startswith("selected") and was["measured"] != now["measured"]:
        yield "measured"


@pytest.mark.parametrize(
    "problems", [DAILY, pytest.param(EMBEDDED, marks=pytest.mark.slow)], ids=["some", "all"]
)
@pytest.mark.parametrize("machine", CASES)
def test_fits_on_embedded_data(machine, problems):
    assert not fit_differences(machine, problems, exact=False)


@pytest.mark.slow
@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize("machine", CASES)
def test_fits_on_the_mirror(machine):
    assert not fit_differences(machine, MIRRORED, exact=False)


@pytest.mark.slow
def test_tables_on_embedded_data():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pytest, "skip", pytest.fail)  # nothing is missing for embedded data
        check_tables(QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(EXPERIMENTS) - set(QUICK) - set(LEFT_OUT)))
def test_table(name):
    check_tables([name])


def check_tables(names: list[str]) -> None:
    """Fail if a table differs; skip if one cannot be made here."""
    reasons = [reason for name in names if (reason := unavailable(name))]
    tables, skipped = ({}, reasons) if reasons else tables_of(names)
    lines = [line for name in tables for line in table_differences(name, tables[name], exact=False)]
    assert not lines
    assert reasons or set(tables) == set(names) - {line.partition(":")[0] for line in skipped}
    if skipped:
        pytest.skip("; ".join(skipped))


def write(machines: list[str], experiments: list[str]) -> None:
    """Renew the golden values of machines and experiments."""
    stored = read(FITS) if FITS.exists() else as_text([])
    parts = [
        as_text(fits_of(name, PROBLEMS)) if name in machines else stored[stored.machine == name]
        for name in CASES
    ]
    pd.concat(parts).to_csv(FITS, index=False, lineterminator="\n")
    tables, skipped = tables_of(experiments)
    TABLES.mkdir(exist_ok=True)
    for name, table in tables.items():
        table.to_csv(TABLES / f"{name}.csv", index=False, lineterminator="\n")
    for line in skipped:
        print("skipped", line)


def check(machines: list[str], experiments: list[str], exact: bool) -> bool:
    """Print what differs from the golden values; return whether nothing does."""
    found = []
    problems = PROBLEMS if MIRROR.exists() else EMBEDDED
    if machines and problems is EMBEDDED:
        print(f"skipped fits on {', '.join(MIRRORED)}: there is no mirror ({MIRROR})")
    for name in machines:
        start = time.process_time()
        found += (lines := fit_differences(name, problems, exact))
        print(*lines, f"{name}: {len(lines)} differences", sep="\n", end=" ")
        print(f"({time.process_time() - start:.1f} s)", flush=True)
    tables, skipped = tables_of(experiments)
    for name, table in tables.items():
        found += (lines := table_differences(name, table, exact))
        print(*lines, f"{name}: {len(lines)} differences", sep="\n", flush=True)
    for line in skipped:
        print("skipped", line)
    return not found


def main() -> int:
    """Read the command line; return the exit code."""
    parser = argparse.ArgumentParser("python -m tests.golden.test_golden")
    parser.add_argument("command", choices=["check", "write"])
    parser.add_argument("names", nargs="*", help="machines, experiments, fits, quick, tables")
    parser.add_argument("--exact", action="store_true", help="compare every digit")
    options = parser.parse_intermixed_args()
    groups = {"fits": list(CASES), "quick": QUICK, "tables": EXPERIMENTS}
    names = [n for name in options.names or ["fits", "quick"] for n in groups.get(name, [name])]
    if unknown := set(names) - set(CASES) - set(EXPERIMENTS):
        parser.error(f"no machine or experiment: {', '.join(sorted(unknown))}")
    machines = [name for name in CASES if name in names]
    experiments = [name for name in EXPERIMENTS if name in names]
    if reasons := list(filter(None, map(unavailable, experiments))):
        print(*(f"skipped {reason}" for reason in reasons), sep="\n")
        experiments = [name for name in experiments if not unavailable(name)]
    if options.command == "write":
        write(machines, experiments)
        return 0
    return 0 if check(machines, experiments, options.exact) else 1


if __name__ == "__main__":
    sys.exit(main())
