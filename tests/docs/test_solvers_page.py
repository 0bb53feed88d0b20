"""The figures of docs/solvers.md are those of its reference table."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs/solvers.md").read_text(encoding="utf-8").split())
TABLE = (ROOT / "results/reference/solvers/table.md").read_text(encoding="utf-8")


def milliseconds() -> dict[str, list[dict[str, float]]]:
    """Median CPU ms by solver: for each kernel, one time per data set."""
    found: dict[str, list[dict[str, float]]] = {}
    for block in re.split(r"\n\*\*(?=.*median CPU ms)", TABLE)[1:]:
        lines = [line for line in block.split("\n\n")[1].splitlines() if line.startswith("|")]
        head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
        for name, *cells in rows:
            times = dict(zip(head[1:], cells, strict=True))
            found.setdefault(name, []).append({k: float(v) for k, v in times.items() if v != "–"})
    return found


MS = milliseconds()
REPEATED = "ida_breast_cancer"


def ratios(solver: str, machine: str, leave_out: str = "") -> list[float]:
    """Times of a solver divided by those of mmbench, of all kernels and data sets."""
    return [
        theirs[name] / ours[name]
        for ours, theirs in zip(MS[machine], MS[solver], strict=True)
        for name in theirs
        if not (name == leave_out and ours is MS[machine][0])
    ]


def span(values: list[float], digits: int) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def test_the_ratios_of_times_are_those_of_the_table():
    libsvm = ("libsvm-official", "libsvm in scikit-learn")
    svm, sigma = (
        [r for name in libsvm for r in ratios(f"{machine}, {name}", machine, REPEATED)]
        for machine in ("SVM", "Σ-SVM")
    )
    clarabel = ratios("SVM, Clarabel", "SVM")
    assert f"trains the SVM in {span(svm, 1)} times mmbench's time" in PAGE
    assert f"On the Σ-SVM it takes {span(sigma, 1)} times as long" in PAGE
    assert f"in {span(clarabel, 0)} times the time ({median(clarabel):.0f} in the median)" in PAGE


def test_the_times_of_repeated_rows_are_those_of_the_table():
    first = {name: times[0][REPEATED] for name, times in MS.items()}
    svm = [first[f"SVM, {name}"] for name in ("libsvm-official", "libsvm in scikit-learn")]
    sigma = [first[f"Σ-SVM, {name}"] for name in ("libsvm-official", "libsvm in scikit-learn")]
    assert (
        f"there the SVM takes {svm[0] / 1e3:.1f} s (libsvm-official) and {svm[1] / 1e3:.1f} s "
        f"(scikit-learn) in place of {first['SVM']:.0f} ms, the Σ-SVM {sigma[0] / 1e3:.1f} and "
        f"{sigma[1] / 1e3:.1f} s in place of {first['Σ-SVM']:.0f} ms"
    ) in PAGE


def test_the_times_of_the_m4_are_those_of_the_table():
    search, cone, own = (
        median(MS[name][0].values())  # the linear kernel, as the search is of linear machines
        for name in ("M4, search over rho", "M4, Clarabel", "M4")
    )
    assert (
        f"search over rho** takes {search / 1e3:.1f} s in the median, one cone program "
        f"{cone:.0f} ms, mmbench's route {own:.0f} ms"
    ) in PAGE
