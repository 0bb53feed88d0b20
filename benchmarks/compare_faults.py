"""Faults that are put into the reference tables, to measure which of them a comparison notices.

    python benchmarks/compare_faults.py

prints the tables of the page ``docs/compare.md``. In each reference, a fault is put into all cells
or machines at once: cells and machines are compared independently of one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from mmbench.datasets.card import load_card
from mmbench.datasets.card_files import card_names
from mmbench.jobs.planned import Key
from mmbench.results.cells import COUNTED, METRIC
from mmbench.results.compare import Changes, compare
from mmbench.results.folder import read_reference
from mmbench.results.frames import Results

ROOT = Path(__file__).resolve().parents[1] / "results/reference"
NAMES = sorted(path.parent.name for path in ROOT.glob("*/table.csv"))
WAYS = ("split by split", "by values", "by means")
#: Parameters that no reference has.
OTHER = {"C": "other"}


@cache
def reference(name: str) -> Results:
    """Return a reference whose splits have a column ``key``, and only counted splits."""
    found = read_reference(ROOT / name)
    rows = found.splits
    failed = [bool((fits or {}).get("failed")) for fits in rows.fits]
    rows = rows[rows.accuracy_pct.notna() & ~np.array(failed, dtype=bool)]
    keys = [Key(*key) for key in zip(*(_plain(rows[name]) for name in Key._fields), strict=True)]
    return renewed(found, rows.assign(key=keys))


def _plain(column: pd.Series) -> list:
    return [None if pd.isna(value) else value for value in column]


def renewed(results: Results, splits: pd.DataFrame) -> Results:
    """Return results with other splits, and the means over these splits."""
    splits = splits.assign(accuracy_pct=100 - 100 * splits.errors_count / splits.n_test)
    cells, groups = results.cells.copy(), splits.groupby("key", sort=False)
    for metric in COUNTED:
        rows = (cells.metric == metric) & cells.measured.notna()
        found = groups[metric].agg(["mean", "std", "size"]).reindex(cells.key)
        found = found.set_index(cells.index)[rows]
        cells.loc[rows, "measured"] = found["mean"].astype(float)
        cells.loc[rows, "n"] = found["size"]
        several = rows & (cells.n > 1)
        cells.loc[several, "se"] = (found["std"] / found["size"] ** 0.5)[several].astype(float)
    return replace(results, stored=cells, splits=splits)


def more_errors(results: Results, extra: pd.Series | np.ndarray) -> Results:
    """Return results with more errors in each split."""
    splits = results.splits
    errors = np.clip(splits.errors_count + extra, 0, splits.n_test.astype(float))
    expected = splits.errors_expected + errors - splits.errors_count
    return renewed(results, splits.assign(errors_count=errors, errors_expected=expected))


def tenth(results: Results) -> np.ndarray:
    """Return a mask of a tenth of the splits of each cell, at least one."""
    groups = results.splits.groupby("key", sort=False)
    return (groups.cumcount() < np.maximum(1, groups.key.transform("size") // 10)).to_numpy()


@cache
def majority(dataset: str) -> float | None:
    """Return the share of the largest class of a data set; None if it is unknown."""
    if dataset not in card_names():
        return None
    counts = load_card(dataset).expect.classes.values()
    return max(counts) / sum(counts) if counts else None


def collapsed(results: Results, mask: np.ndarray | bool, others: bool) -> Results:
    """Return results that predict the larger class in some splits, with `others` by other
    parameters.
    """
    splits = results.splits
    shares = splits.dataset.map(majority).fillna(1 / splits.n_classes.astype(float))
    errors = (splits.n_test.astype(float) * (1 - shares.astype(float))).round()
    extra = (errors - splits.errors_count).clip(lower=0) * mask
    made = more_errors(results, extra)
    return other_parameters(made, mask) if others else made


def other_parameters(results: Results, mask: np.ndarray | bool = True) -> Results:
    """Return results with other parameters in some splits."""
    chosen = np.broadcast_to(mask, len(results.splits))
    given = zip(results.splits.parameters, chosen, strict=True)
    found = [OTHER if other else parameters for parameters, other in given]
    return replace(results, splits=results.splits.assign(parameters=found))


def lost(results: Results, points: float) -> Results:
    """Return results in which all machines have lost accuracy: more errors in splits at random."""
    random, n_test = np.random.default_rng(0), results.splits.n_test.astype(float)
    shares = n_test / results.splits.groupby("key").n_test.transform("sum").astype(float)
    totals = results.splits.groupby("key").n_test.transform("sum").astype(float) * points / 100
    extra = pd.Series(0.0, results.splits.index)
    for _, rows in results.splits.groupby("key"):
        total = int(np.floor(totals[rows.index[0]] + random.random()))
        extra[rows.index] = random.multinomial(total, shares[rows.index] / shares[rows.index].sum())
    return more_errors(results, extra)


def swapped(results: Results) -> Results:
    """Return results in which each two neighbouring machines of a place are swapped."""
    places: dict[Key, list[Key]] = {}
    for key in dict.fromkeys(results.splits.key):
        places.setdefault(key._replace(machine=""), []).append(key)
    turn = {}
    for keys in places.values():
        for first, second in zip(keys[::2], keys[1::2], strict=False):
            turn |= {first: second, second: first}
    splits = results.splits[results.splits.key.isin(list(turn))]
    keys = [turn[key] for key in splits.key]
    machines = [key.machine for key in keys]
    splits = splits.assign(key=pd.Series(keys, splits.index, object), machine=machines)
    cells = results.cells[results.cells.key.isin(list(turn))]
    return renewed(replace(results, stored=cells), splits)


def without_a_tenth(results: Results) -> Results:
    """Return results without a tenth of the splits of each cell."""
    return renewed(results, results.splits[~tenth(results)])


def trivial(results: Results) -> Results:
    """Return results in which the status "optimal" is "trivial"."""
    splits, cells = (
        frame.assign(status=frame.status.replace("optimal", "trivial"))
        for frame in (results.splits, results.cells)
    )
    return replace(results, splits=splits, stored=cells)


class Fault(NamedTuple):
    """A fault: its description, the function that makes it, and whether it is put into machines."""

    about: str
    make: Callable[[Results], Results]
    of_machines: bool = False


FAULTS = {
    "all": Fault("predicts the larger class in all splits", lambda r: collapsed(r, True, False)),
    "all_others": Fault("the same, other parameters", lambda r: collapsed(r, True, True)),
    "tenth": Fault(
        "predicts the larger class in a tenth of the splits",
        lambda r: collapsed(r, tenth(r), False),
    ),
    "tenth_others": Fault(
        "the same, other parameters there", lambda r: collapsed(r, tenth(r), True)
    ),
    "swapped": Fault("two machines are swapped on a data set", swapped),
    "gone": Fault("a tenth of the splits is missing", without_a_tenth),
    "trivial": Fault('each "optimal" is "trivial"', trivial),
    "parameters": Fault("all parameters differ, with equal errors", other_parameters),
    **{
        f"points_{points}": Fault(
            f"a machine loses {points} point{'s' * (points != 1)} on all data sets",
            lambda r, points=points: lost(r, points),
            True,
        )
        for points in (0.5, 1, 2)
    },
}


def seen(before: Results, after: Results, way: str) -> Changes:
    """Compare two results in one of the ways."""
    if way == WAYS[1]:
        none = before.splits[:0].drop(columns="key")
        return compare(replace(before, splits=none), replace(after, splits=none))
    if way == WAYS[2]:
        after = replace(after, splits=after.splits.assign(split_hash="other"))
    return compare(before, after)


def outcome(before: Results, fault: Fault, way: str) -> pd.DataFrame:
    """Return which cells or machines were noticed, and their loss in percentage points.

    The index is the key of the cell, or the name of the machine. ``noticed`` is "difference",
    "warning" or empty.
    """
    after = fault.make(before)
    frame = seen(before, after, way).findings
    old, new = (
        side.cells[(side.cells.metric == METRIC) & side.cells.measured.notna()].set_index("key")
        for side in (before, after)
    )
    old = old.reindex(new.index)
    loss = (old.measured - new.measured).round(9)
    changed = (loss.abs() > 0) | (old.status != new.status)
    loss = loss[changed | ~changed.any()]  # a cell without any change has no fault
    if fault.of_machines:
        loss, keys = loss.groupby([key.machine for key in loss.index]).mean(), list(frame.machine)
    else:
        frame = frame[frame.dataset != ""]
        keys = [Key(*key) for key in zip(*(_plain(frame[n]) for n in Key._fields), strict=True)]
    kinds = dict(sorted(zip(keys, frame.kind, strict=True), key=lambda item: item[1] != "warning"))
    noticed = [kinds.get(key, "") for key in loss.index]
    return pd.DataFrame({"loss": loss.abs(), "noticed": noticed})


def table(names: Iterable[str] = NAMES) -> pd.DataFrame:
    """Return the outcomes of all faults in some references."""
    parts = [
        outcome(reference(name), fault, way).assign(fault=label, way=way)
        for name in names
        for label, fault in FAULTS.items()
        for way in WAYS
    ]
    return pd.concat(parts, ignore_index=True)


def page(found: pd.DataFrame) -> str:
    """Return the table of the page ``docs/compare.md``."""
    lines = [f"| Fault | {' | '.join(WAYS)} |", "| --- | --- | --- | --- |"]
    for label, fault in FAULTS.items():
        texts = []
        for way in WAYS:
            own = found[(found.fault == label) & (found.way == way)]
            parts = [f"{100 * (own.noticed == 'difference').mean():.0f} %"]
            if (warned := (own.noticed == "warning").mean()) > 0.005:
                parts.append(f"{100 * warned:.0f} % warned")
            loss = own.loss[own.noticed != "difference"].max()
            texts.append(", ".join(parts) + (f" ({loss:.1f})" if loss > 0 else ""))
        lines.append(f"| {fault.about} | {' | '.join(texts)} |")
    return "\n".join(lines)


def sizes(names: Iterable[str] = NAMES) -> str:
    """Return the losses of a cell, in percentage points, that are always a difference."""
    lines = ["| Way | median | 90 % of the cells | all cells |", "| --- | --- | --- | --- |"]
    for way in WAYS:
        made = (seen(reference(name), reference(name), way).cells for name in names)
        allowed = pd.concat(own.allowed[own.metric == METRIC].dropna() for own in made)
        texts = [f"{allowed.quantile(q):.1f}" for q in (0.5, 0.9, 1.0)]
        lines.append(f"| {way} | {' | '.join(texts)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(table()))
    print(sizes())
