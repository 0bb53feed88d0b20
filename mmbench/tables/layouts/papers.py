"""Table blocks for the layouts of the papers' tables in ``layouts.yaml``.

In most blocks, published values are in the row below the measured values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from mmbench.jobs.planned import Key
from mmbench.results.cells import METRIC, Row, finished
from mmbench.results.differences import MIN_SPLITS
from mmbench.results.frames import Results
from mmbench.results.pairwise import difference_of, split_gaps
from mmbench.results.published import published_rows
from mmbench.results.splits import STAGES
from mmbench.results.statistics import LEVEL, best_and_worst, paired_p, win_tie_loss
from mmbench.tables.blocks import (
    Side,
    by_machine,
    by_stage,
    data_heads,
    direction,
    paired,
    signed,
    stacked,
    total,
    values,
)
from mmbench.tables.names import caption_of, columns_of, head, name_of, printed, shown
from mmbench.tables.text import (
    NOTHING,
    TIMES,
    Column,
    Grid,
    Shown,
    join,
    kernel_text,
    measured,
    measured_text,
    numbers,
    once,
    plain,
    published_text,
    seconds_text,
    words,
)

# -- MMRM --------------------------------------------------------------------------------------


#: Sizes of a data set that are listed in table 2 of the MMRM paper.
MMRM_SIZES = ("train", "test", "features", "classes")


def mmrm_errors(results: Results) -> list[Grid]:
    """Return a block of errors and data set sizes, and a block of tied votes and CPU seconds."""

    def size(name: str) -> Callable[[Key], object]:
        return lambda place: size_text(results, place.dataset, f"n_{name}")

    sizes = {Column(f"#{name}", group="Data info"): size(name) for name in MMRM_SIZES}
    heads = {**data_heads(lambda place: head(results, place), "data set"), **sizes}
    caption, rest = "Errors: measured / published", lambda row: f" / {published_text(row)}"
    errors = values(results, "errors_count", measured, caption, heads, caption, rest)
    return [errors, _ties_and_seconds(results)]


def size_text(results: Results, dataset: str, name: str) -> str:
    """Return a size of a data set as text: the smallest and the largest value over the splits."""
    return " to ".join(map(str, results.facts["sizes"].get(dataset, {}).get(name, ()))) or NOTHING


def _ties_and_seconds(results: Results) -> Grid:
    """Return a table block of tied votes, errors expected under random tie-breaking, CPU seconds
    and support vectors.
    """
    rows = []
    for place, machine in product(results.places, results.columns):
        key = place._replace(machine=machine)
        if results.value(key, "errors_count") is not None:
            seconds = (seconds_text(results.value(key, f"seconds_{stage}")) for stage in STAGES)
            ties, support = (results.row(key, metric) for metric in ("n_ties", "n_support"))
            expected = measured_text(results.row(key, "errors_expected"), 1)
            texts = (measured_text(ties), expected, *seconds, measured_text(support, 0))
            rows.append([name_of(results, place), results.label(machine), *texts])
    columns = (
        *(*words("data set", "machine"), *numbers("ties", "expected errors")),
        *(*numbers(*STAGES, group="CPU seconds"), *numbers("support vectors per pair")),
    )
    caption = "Tied votes, errors expected under random tie-breaking, CPU seconds"
    return Grid(columns, once(rows), caption)


# -- M4 ----------------------------------------------------------------------------------------

#: Levels of the two quantiles that enclose 90 % of the accuracies.
RANGE = (0.05, 0.95)


def m4_draws(results: Results) -> list[Grid]:
    """Return a table block that summarizes the accuracies on random draws of toy sets, with four
    rows per toy set.

    The first two rows contain the mean accuracy, and the interval in which 90 % of the accuracies
    lie. The last two rows contain the published accuracy, and its percentile among the measured
    accuracies.
    """

    def mean(row: Row) -> Shown:
        return shown(measured(row, 1, sd=True), row)

    def ends(row: Row) -> str:
        draws = list(results.by_split(row.key).values())
        return "{:.1f} to {:.1f}".format(*np.quantile(draws, RANGE)) if draws[1:] else NOTHING

    def rank(row: Row) -> str:
        value = percentile(results, row.key)
        return NOTHING if value is None else f"{value:.3g}"

    texts = {"measured": mean, "90 % of the draws": ends}
    texts |= {"published": partial(published_text, decimals=1), "its percentile": rank}
    return [stacked(results, results.places, texts)]


def percentile(results: Results, key: Key) -> float | None:
    """Return the percentile of a published accuracy among the accuracies on all splits, or None if
    there are fewer than two splits.
    """
    published = results.row(key, METRIC).published
    draws = np.round(list(results.by_split(key).values()), 1)
    if published is None or len(draws) < 2:
        return None
    below = (draws < published).sum() + (draws <= published).sum()
    return float(below * (50.0 / len(draws)))


#: Data sets on which, according to the M4 paper, the M4 is significantly better than SVM and MPM.
SIGNIFICANT = {
    "linear": ("breast_wisconsin", "ionosphere", "sonar", "vote", "heart"),
    "rbf": ("breast_wisconsin", "ionosphere", "vote", "heart"),
}


def _best(results: Results, side: Side) -> dict[str, list[str]]:
    counts = best_and_worst(side["mean"], decimals=1)
    return {"Best": [str(counts[m][0]) if m in counts else NOTHING for m in results.columns]}


def m4_accuracies(results: Results) -> Iterator[Grid]:
    """Yield two table blocks per kernel: accuracies, and tests of the M4 against every other
    machine.

    The last rows of the block of accuracies state on how many data sets each machine is the best.
    """
    for grid, kernel in zip(
        paired(results, caption="{}", count=_best), results.kernels, strict=True
    ):
        yield grid
        if "m4" in results.columns and len(results.columns) > 1:
            yield _m4_tests(results, results.places_of(kernel), grid.caption)


def _m4_tests(results: Results, places: list[Key], caption: Shown) -> Grid:
    """Return a table block with mean differences between the M4 and other machines, and p-values.

    The first p-value is of the paired t-test over splits, which the M4 paper seems to use. The
    second is of the test of all tables; see `mmbench.results.differences`.
    """
    others = [machine for machine in results.columns if machine != "m4"]
    m4 = results.label("m4")
    heads = (h for m in others for h in (f"{m4} minus {results.label(m)}", "plain p", "p"))
    rows = []
    for place in places:
        texts = [printed(results, place.dataset)]
        for machine in others:
            gaps = split_gaps(results, place, "m4", machine)
            texts.append(signed(fmean(gaps)) if gaps else NOTHING)
            m4_at, other = (place._replace(machine=name) for name in ("m4", machine))
            tested = difference_of(results, m4_at, other)
            for p in (paired_p(gaps), tested.p if tested else math.nan):
                mark = direction(fmean(gaps)) if p < LEVEL else ""
                text = join("<0.001" if p < 0.001 else f"{p:.3f}", mark)
                texts.append(NOTHING if p != p or len(gaps) < MIN_SPLITS else text)
        rows.append([*texts, "yes" if place.dataset in SIGNIFICANT.get(place.kernel, ()) else "no"])
    caption = f"{plain(caption)}: differences in accuracy (%)"
    last = words("better than both in the paper")
    return Grid((*words("data"), *numbers(*heads), *last), rows, caption)


# -- MAMC --------------------------------------------------------------------------------------


def mamc_accuracies(results: Results) -> list[Grid]:
    """Return a table block of accuracies and a table block of data set sizes.

    The last rows of the block of accuracies contain averages and win/tie/loss counts.
    """
    return [*paired(results, decimals=2, sd=True, count=_mamc_counts), _mamc_sizes(results)]


def _mamc_counts(results: Results, side: Side) -> dict[str, list[str]]:
    """Return average accuracies, best/worst counts and win/tie/loss counts, one text per machine.

    As in the paper, Welch's t-test at the 95 % level decides whether MAMC_bs wins, ties or loses
    against another machine.
    """
    means = side["mean"].dropna(how="all")
    counts, several = best_and_worst(means), side["n"] > 1

    def against(machine: str) -> str:
        both_ran = several.get("mamc_bs", False) & several[machine]
        if machine == "mamc_bs" or not np.any(both_ran):
            return NOTHING
        kept = [side[name].loc[both_ran] for name in ("mean", "sd", "n")]
        counts = win_tie_loss(*([part[m] for part in kept] for m in ("mamc_bs", machine)))
        return "/".join(map(str, counts))

    averages = (fmean(means[m]) if len(means) else np.nan for m in means)
    return {
        "Average": [NOTHING if np.isnan(mean) else f"{mean:.2f}" for mean in averages],
        "best/worst": ["/".join(map(str, counts[m])) if m in counts else NOTHING for m in means],
        "W/T/L": list(map(against, means)),
    }


def _mamc_sizes(results: Results) -> Grid:
    """Return table 1 of the MAMC paper: numbers of features, of rows per split, and of splits."""
    ours = {key.dataset: n for key in results.keys if (n := len(results.counted(key)))}
    theirs, rows = {row["dataset"]: row["n_splits"] for row in published_rows("mamc_table1")}, []
    for name in results.datasets:
        texts = (size_text(results, name, part) for part in ("n_features", "n_train", "n_test"))
        splits = (str(counts.get(name, NOTHING)) for counts in (ours, theirs))
        rows.append([printed(results, name), *texts, *splits])
    heads = ("inputs", "train", "test", "splits run", "splits of the paper")
    return Grid((*words("data"), *numbers(*heads)), rows, "The data sets (table 1)")


def mamc_seconds(results: Results) -> list[pd.DataFrame]:
    """Return the measured and the published CPU seconds, with one row per data set."""
    # The MAMC is included even if the MAMC was not run, since published times are divided by the
    # published times of the MAMC.
    names = list(dict.fromkeys((*results.columns, "mamc")))
    known = (p for p in results.published if p["metric"] == "seconds" and p["value"] is not None)
    printed = {(p["dataset"], p["machine"]): p["value"] for p in known}
    keys = [[place._replace(machine=m) for m in names] for place in results.places]
    ours = [[total(results, key) for key in line] for line in keys]
    theirs = [[printed.get((key.dataset, key.machine)) for key in line] for line in keys]
    return [pd.DataFrame(side, columns=names, dtype=float) for side in (ours, theirs)]


def mamc_ratios(seconds: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """Return the CPU seconds relative to the MAMC, measured and published."""
    return [side.div(side["mamc"].replace(0.0, np.nan), axis=0) for side in seconds]


def mamc_times(results: Results) -> list[Grid]:
    """Return a table block of CPU seconds, and a table block of CPU seconds relative to the MAMC.

    Measured and published CPU seconds are not comparable, since the paper used another computer and
    another program. Measured and published ratios are comparable.
    """
    ratios = mamc_ratios(seconds := mamc_seconds(results))

    def block(name: str, text: Callable[[float], str], sides: list[pd.DataFrame]) -> Grid:
        caption = f"{name}: measured / published"
        ours, theirs = (side[results.columns].map(text).to_numpy() for side in sides)
        cells = np.column_stack(
            [[name_of(results, p) for p in results.places], ours + " / " + theirs]
        )
        return Grid(columns_of(results, "data", group=caption), cells.tolist(), caption)

    def ratio(value: float) -> str:
        return NOTHING if np.isnan(value) else f"{value:.{1 if value < 100 else 0}f}"

    grids = [block("CPU seconds", seconds_text, seconds), block("Ratio", ratio, ratios)]
    # Some of the published times are missing in the surviving text of the paper. Therefore, the
    # published counts of shortest and longest times are read from the paper, and not computed.
    values = {(row["metric"], row["machine"]): row["value"] for row in results.published}
    counts, texts = best_and_worst(-seconds[0][results.columns], decimals=None), []
    for m in results.columns:
        most: list[Any] = [values.get((metric, m)) for metric in ("best_count", "worst_count")]
        theirs_text = NOTHING if None in most else "{:.0f}-{:.0f}".format(*most)
        texts.append(f"{'-'.join(map(str, counts.get(m, ()))) or NOTHING} / {theirs_text}")
    grids[1].rows.append(["shortest-longest", *texts])
    return grids


# -- F-SVM -------------------------------------------------------------------------------------


def fsvm_accuracies(results: Results) -> list[Grid]:
    """Return table blocks of accuracies and of training times.

    The last two rows of each block of accuracies contain counts: one row for measured accuracies,
    and one row for published accuracies. The count for a machine is the number of data sets on
    which the F-SVM has a larger mean accuracy than the machine.
    """
    return [*paired(results, caption="Accuracy. {}", decimals=2, count=_wins), *fsvm_times(results)]


def _wins(results: Results, side: Side) -> dict[str, list[str]]:
    """For each machine, state on how many data sets the F-SVM has a larger mean accuracy than the
    machine.

    The text is "k of n", where n is the number of data sets with results of both machines.
    """
    means = side["mean"].map(lambda mean: round(mean, 2))  # rounded as in the printed table
    if "fsvm" not in means:
        return {}
    ours = means["fsvm"]
    better, known = means.lt(ours, axis=0).sum(), means.notna()[ours.notna()].sum()
    known["fsvm"] = 0
    texts = [f"{better[m]} of {known[m]}" if known[m] else NOTHING for m in means]
    return {f"{results.label('fsvm')} better on": texts}


def fsvm_times(results: Results) -> Iterator[Grid]:
    """Yield one table block per kernel: milliseconds per training with the selected parameters.

    A table cell whose published time is missing in the surviving text of the paper is marked as
    lost.
    """
    times = (row for row in results.published if row["metric"] == "seconds")
    lost = {(row["dataset"], row["machine"]) for row in times if row["value"] is None}

    def text(key: Key) -> str:
        seconds = total(results, key, ("training",))
        ours = NOTHING if seconds is None else f"{1000 * seconds:.1f}"
        return f"{ours} / lost" if (key.dataset, key.machine) in lost else ours

    caption = "CPU milliseconds per training (the published times are lost)."
    heads = data_heads(lambda place: printed(results, place.dataset))
    for kernel in results.kernels:
        own, name = results.places_of(kernel), f"{caption} {caption_of(results, kernel)}"
        cells = {m: {text(place._replace(machine=m)) for place in own} for m in results.columns}
        timed = [machine for machine in cells if cells[machine] != {NOTHING}]
        yield by_machine(results, text, name, heads=heads, places=own, machines=timed, kind=TIMES)


def fsvm_sizes(results: Results) -> list[Grid]:
    """Return a table block of the numbers of rows, classes and features, both in the data sets of
    mmbench and in the paper.
    """
    from mmbench.datasets.card import load_card
    from mmbench.datasets.card_files import card_names

    paper, rows = {(row["dataset"], row["metric"]): row["value"] for row in results.published}, []
    for name in results.datasets:
        expect = load_card(name).expect if name in card_names() else None
        ours = (expect.shape[0], expect.n_classes, expect.shape[1]) if expect else (NOTHING,) * 3
        theirs = (paper.get((name, f"n_{size}")) for size in ("samples", "classes", "attributes"))
        texts = (NOTHING if value is None else f"{value:.0f}" for value in theirs)
        rows.append([printed(results, name), *map(str, ours), *texts])
    heads = ("rows", "classes", "features")
    columns = (*words("data"), *numbers(*heads), *numbers(*(f"{head}, paper" for head in heads)))
    return [Grid(columns, rows)]


def fsvm_excess(results: Results) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Yield rows with the mean and the maximum over splits of ``(F - F*) / F*`` in per cent, and
    with the smallest and the largest number of rounds.

    F is the objective of the machine, and F* is the objective of the machine `fsvm_opt`. All pairs
    of classes are trained jointly, with one objective. The certificate of each pair stores the same
    value F, so that only the first pair is read.
    """
    for key in results.by_cell:
        ours, optima = (
            _first_fits(results, key._replace(machine=m)) for m in (key.machine, OPTIMUM)
        )
        values = []
        for split in sorted(ours.keys() & optima.keys()):
            at, optimum = ours[split]["objective"], optima[split]["objective"]
            # for `fsvm_opt` itself, a lower bound on the optimal objective replaces F* in the
            # numerator
            low = optima[split]["bound"] if key.machine == OPTIMUM else optimum
            if None not in (at, low) and optimum:
                values.append(100 * (at - low) / optimum)
        rounds = [fit["extra"]["rounds"] for fit in ours.values() if "rounds" in fit["extra"]]
        found = {EXCESS: fmean(values), f"{EXCESS}_max": max(values)} if values else {}
        found |= {"rounds_min": min(rounds), "rounds_max": max(rounds)} if rounds else {}
        for metric, value in found.items():
            yield key, {"metric": metric, "measured": value, "n": len(values)}


OPTIMUM, EXCESS = "fsvm_opt", "excess_pct"


def _first_fits(results: Results, key: Key) -> dict[Any, Any]:
    rows = (row for row in finished(results.by_cell.get(key, ())) if row.certificates)
    return {(row.repeat, row.fold, row.seed): row.certificates[0] for row in rows}


def fsvm_rounds(results: Results) -> list[Grid]:
    """Return a table block of objectives relative to the optimal objective, and a table block of
    accuracies.
    """
    rows: list[list[Shown]] = []
    for place in results.places:
        texts = [_objective_text(results, place._replace(machine=m)) for m in results.columns]
        key = place._replace(machine="fsvm")
        ends = [results.value(key, f"rounds_{end}") for end in ("min", "max")]
        rounds = " to ".join(f"{end:.0f}" for end in ends if end is not None) or NOTHING
        rows.append([name_of(results, place), *texts, rounds])
    columns = (*columns_of(results, "data"), *numbers("rounds by the paper's rule"))
    objectives = Grid(columns, rows, "(F - F*) / F* in per cent: mean over splits (maximum)")
    heads = data_heads(lambda place: head(results, place))
    return [
        objectives,
        values(results, METRIC, partial(measured, decimals=2), "Accuracy (%)", heads),
    ]


def _objective_text(results: Results, key: Key) -> str:
    mean, largest = (results.value(key, name) for name in (EXCESS, f"{EXCESS}_max"))
    form = ".0e" if key.machine == OPTIMUM else ".1f"
    return NOTHING if mean is None else f"{mean:{form}} ({largest:{form}})"


#: Name of the image descriptor of each data set.
DESCRIPTOR_LABELS = {"lfw_pairs": "pixels", "lfw_pairs_hog": "HOG", "lfw_pairs_lbp": "LBP"}


def lfw(results: Results) -> list[Grid]:
    """Return a table block with one row per image descriptor and kernel: accuracies and CPU
    seconds.
    """

    def name(place: Key) -> Shown:
        return head(results, place, name=DESCRIPTOR_LABELS.get(place.dataset, place.dataset))

    kernel = data_heads(lambda place: kernel_text(place.kernel, place.degree), "kernel")
    heads = {**data_heads(name, "descriptor"), **kernel}
    accuracies = values(results, METRIC, partial(measured, decimals=2), heads=heads)
    return [accuracies, by_stage(results)]
