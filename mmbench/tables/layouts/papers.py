"""The papers' tables as data: machines in order, published table, blocks, and notes.

A block function returns the blocks of a table, given a sheet; functions for one paper are defined
above its layouts. Most tables have a row of measured values and, below it, a row of published
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from mmbench.jobs.store import Key
from mmbench.tables.blocks import (
    BETTER,
    WORSE,
    Side,
    by_machine,
    by_stage,
    data_heads,
    direction,
    paired,
    results,
    signed,
    size_ratio,
    split_gaps,
    stacked,
    total,
)
from mmbench.tables.compose import STANDARD_DEVIATION, Layout
from mmbench.tables.frame import METRIC, STAGES, Row
from mmbench.tables.model import (
    NOTHING,
    Column,
    Grid,
    join,
    kernel_caption,
    kernel_text,
    measured_text,
    numbers,
    once,
    published_text,
    seconds_text,
    words,
)
from mmbench.tables.published import published_rows
from mmbench.tables.sheet import Sheet
from mmbench.tables.statistics import LEVEL, best_and_worst, paired_p, win_tie_loss

# -- MMRM --------------------------------------------------------------------------------------


def _kernels_in_order(sheet: Sheet) -> list[Grid]:
    sheet.kernels.sort(key=lambda kernel: ("linear", "poly", "rbf").index(kernel[0]))
    return paired(sheet, caption="{}")


mmrm_table1 = Layout(
    "Table 1 of the MMRM paper: accuracy in per cent, linear and RBF kernel, over random "
    "partitions.",
    title="Classification accuracies (%), measured and published (MMRM paper, table 1)",
    published="mmrm_table1",
    machines=("mmrm", "svm", "rmm", "m4", "mpm"),
    blocks=[_kernels_in_order],
    notes=["The standard deviations in the paper have the size of standard errors."],
    metric=METRIC,
)

#: Data sizes in table 2 of the MMRM paper.
MMRM_SIZES = ("train", "test", "features", "classes")


def _errors(sheet: Sheet) -> Grid:
    def write(row: Row) -> str:
        return f"{measured_text(row)} / {published_text(row)}"

    def size(name: str) -> Callable[[Key], object]:
        return lambda place: sheet.sizes.get(place.dataset, {}).get(f"n_{name}", NOTHING)

    sizes = {Column(f"#{name}", group="Data info"): size(name) for name in MMRM_SIZES}
    heads = {**data_heads(sheet.head, "data set"), **sizes}
    caption = "Errors: measured / published"
    return results(sheet, "errors_count", write, caption, heads, group=caption)


def _ties_and_seconds(sheet: Sheet) -> Grid:
    """Return tied votes, expected errors under random tie-breaking, and CPU seconds."""
    rows = []
    for place, machine in product(sheet.places, sheet.machines):
        key = place._replace(machine=machine)
        if sheet.value(key, "errors_count") is not None:
            seconds = (seconds_text(sheet.value(key, f"seconds_{stage}")) for stage in STAGES)
            ties, support = (sheet.row(key, metric) for metric in ("n_ties", "n_support"))
            expected = measured_text(sheet.row(key, "errors_expected"), 1)
            texts = (measured_text(ties), expected, *seconds, measured_text(support, 0))
            rows.append([sheet.name(place), sheet.label(machine), *texts])
    columns = (
        *(*words("data set", "machine"), *numbers("ties", "expected errors")),
        *(*numbers(*STAGES, group="CPU seconds"), *numbers("support vectors per pair")),
    )
    caption = "Tied votes, errors expected under random tie-breaking, CPU seconds"
    return Grid(columns, once(rows), caption)


mmrm_table2 = Layout(
    "Table 2 of the MMRM paper: test errors on large data sets, with sizes, ties and CPU seconds.",
    title="Classification errors on the test part (MMRM paper, table 2)",
    published="mmrm_table2",
    machines=("mmrm", "rmm", "svm"),
    blocks=[_errors, _ties_and_seconds],
    notes=["{mmrm} and {rmm} reuse the SVM's C and gamma; this search is in the time of {svm}."],
    metric="errors_count",
)

# -- RMM, journal version ----------------------------------------------------------------------


def _rates(row: Row) -> Row:
    values = (row.measured, row.published)
    measured, published = (None if value is None else 100 - value for value in values)
    return row._replace(measured=measured, published=published)


rmm_journal_table4 = Layout(
    "Table 4 of the RMM journal paper: error rates (%) on thirteen two-class sets.",
    title="Errors (%) on the two-class sets, measured and published (RMM journal, table 4)",
    published="rmm_2010_table4",
    machines=("svm", "klda", "sigma_svm", "rmm_c_equals_d", "rmm"),
    blocks=[partial(paired, sd=True, change=_rates)],
    metric=METRIC,
    spread=STANDARD_DEVIATION,
)

# -- M4 ----------------------------------------------------------------------------------------

#: Quantiles of the draws at the two ends of the range in table I.
RANGE = (0.05, 0.95)


def _draws(sheet: Sheet) -> Grid:
    """Return four rows per toy set: mean, range of 90 % of the draws, published, percentile."""

    def mean(row: Row) -> str:
        return sheet.marked(measured_text(row, 1, sd=True), row)

    def ends(row: Row) -> str:
        draws = list(sheet.by_split(row.key).values())
        return "{:.1f} to {:.1f}".format(*np.quantile(draws, RANGE)) if draws[1:] else NOTHING

    def rank(row: Row) -> str:
        draws, value = list(sheet.by_split(row.key).values()), row.published
        return f"{percentile(draws, value):.3g}" if draws[1:] and value is not None else NOTHING

    def published(row: Row) -> str:
        return published_text(row, 1)

    texts = {"measured": mean, "90 % of the draws": ends, "published": published}
    return stacked(sheet, sheet.places, {**texts, "its percentile": rank})


def percentile(draws: Sequence[float], value: float) -> float:
    """Return the percentage of draws below a value; draws that round to the value count half.

    Examples
    --------
    >>> percentile([97.0, 98.8, 98.83, 99.2], 98.8)
    50.0
    """
    printed = np.round(draws, 1)
    return float(100 * ((printed < value).mean() + 0.5 * np.isclose(printed, value).mean()))


m4_table1 = Layout(
    "Table I of the M4 paper: accuracy on four toy sets, one published draw among many.",
    title="Accuracy (%) on the toy sets over draws, and the published draw (M4 paper, table I)",
    published="m4_table1",
    machines=("m4", "svm", "mpm"),
    blocks=[_draws],
    notes=["Percentile: percentage of draws below the published value; ties count half."],
    metric=METRIC,
    spread=STANDARD_DEVIATION,
    runs="draws",
)

#: Data sets on which the M4 paper's text calls the M4 significantly better than SVM and MPM.
SIGNIFICANT = {
    "linear": ("breast_wisconsin", "ionosphere", "sonar", "vote", "heart"),
    "rbf": ("breast_wisconsin", "ionosphere", "vote", "heart"),
}


def _best(sheet: Sheet, side: Side) -> dict[str, list[str]]:
    counts = best_and_worst(side["mean"], decimals=1)
    return {"Best": [str(counts[m][0]) if m in counts else NOTHING for m in sheet.machines]}


def _accuracies_and_tests(sheet: Sheet) -> Iterator[Grid]:
    """Yield two blocks per kernel: accuracies with the count of best results, and tests."""
    grids = paired(sheet, caption="{}", count=_best)
    for grid, kernel in zip(grids, sheet.kernels, strict=True):
        yield grid
        if "m4" in sheet.machines and len(sheet.machines) > 1:
            yield _m4_tests(sheet, sheet.places_of(kernel), grid.caption)


def _m4_tests(sheet: Sheet, places: list[Key], caption: str) -> Grid:
    """Return mean differences over splits, and p-values of two paired t-tests.

    The paper's test is taken to be the plain t-test; the second test is corrected for training rows
    that splits share (Nadeau and Bengio 2003).
    """
    others = [machine for machine in sheet.machines if machine != "m4"]
    m4 = sheet.label("m4")
    heads = (h for m in others for h in (f"{m4} minus {sheet.label(m)}", "p", "corrected p"))
    rows = []
    for place in places:
        texts = [sheet.printed(place.dataset)]
        for machine in others:
            gaps = split_gaps(sheet, place, "m4", machine)
            texts.append(signed(fmean(gaps)) if gaps else NOTHING)
            for ratio in (0.0, size_ratio(sheet, place)):
                p, mark = paired_p(gaps, ratio), direction(fmean(gaps)) if gaps else ""
                text = join("<0.001" if p < 0.001 else f"{p:.3f}", mark if p < LEVEL else "")
                texts.append(NOTHING if p != p else text)
        claimed = place.dataset in SIGNIFICANT.get(place.kernel, ())
        rows.append([*texts, "yes" if claimed else "no"])
    caption = f"{caption}: differences in accuracy (%)"
    last = words("better than both in the paper")
    return Grid((*words("data"), *numbers(*heads), *last), rows, caption)


m4_table2 = Layout(
    "Table II of the M4 paper: accuracy on seven sets, linear and Gaussian, with tests of the M4.",
    title="Accuracy (%) on the benchmark sets, measured and published (M4 paper, table II)",
    published="m4_table2",
    machines=("m4", "svm", "mpm"),
    blocks=[_accuracies_and_tests],
    notes=[
        "The paper does not define its ±, which have the size of standard errors over 50 "
        "partitions.",
        "Best: number of data sets on which the printed mean is the largest; ties all count.",
        f"{BETTER} M4 better, {WORSE} M4 worse at {LEVEL:g}. p: paired t-test over splits; "
        "corrected p: corrected for shared training rows (Nadeau and Bengio 2003).",
    ],
    metric=METRIC,
)

# -- MAMC --------------------------------------------------------------------------------------

MAMC_MACHINES = ("mamc_bs", "mamc_bsg", "mamc_b", "mamc", "emamc", "svm")


def _mamc_counts(sheet: Sheet, side: Side) -> dict[str, list[str]]:
    """Return three rows of counts: average, best/worst, and win/tie/loss of MAMC_bs.

    Measured and published results are counted by the rules of the paper, with Welch's t-test at
    the 95 % level.
    """
    means = side["mean"].dropna(how="all")
    counts, several = best_and_worst(means), side["n"] > 1

    def against(machine: str) -> str:
        both_ran = several.get("mamc_bs", False) & several[machine]
        if machine == "mamc_bs" or not np.any(both_ran):
            return NOTHING
        samples = (
            [side[name].loc[both_ran, m] for name in ("mean", "sd", "n")]
            for m in ("mamc_bs", machine)
        )
        return str(win_tie_loss(*samples))

    averages = [f"{fmean(means[m]):.2f}" if len(means) else NOTHING for m in means]
    return {
        "Average": [NOTHING if text == "nan" else text for text in averages],
        "best/worst": ["/".join(map(str, counts[m])) if m in counts else NOTHING for m in means],
        "W/T/L": list(map(against, means)),
    }


def _mamc_sizes(sheet: Sheet) -> Grid:
    """Return table 1 of the paper: features, rows per split, and measured and published splits."""
    ours = {key.dataset: len(cell.counted) for key, cell in sheet.cells.items() if cell.counted}
    theirs = {row["dataset"]: row["n_splits"] for row in published_rows("mamc_table1")}
    rows = []
    for name in sheet.datasets:
        sizes = sheet.sizes.get(name, {})
        texts = [sizes.get(part, NOTHING) for part in ("n_features", "n_train", "n_test")]
        texts += [ours.get(name, NOTHING), theirs.get(name, NOTHING)]
        rows.append([sheet.printed(name), *map(str, texts)])
    heads = ("inputs", "train", "test", "splits run", "splits of the paper")
    return Grid((*words("data"), *numbers(*heads)), rows, "The data sets (table 1)")


mamc_table2 = Layout(
    "Tables 1 and 2 of the MAMC paper: accuracy on thirteen two-class sets, averages and counts.",
    title="Accuracy (%) on the two-class sets, measured and published (MAMC paper, table 2)",
    published="mamc_table2",
    machines=MAMC_MACHINES,
    blocks=[partial(paired, decimals=2, sd=True, count=_mamc_counts), _mamc_sizes],
    notes=[
        "Average: mean over data sets.",
        "Best/worst: numbers of data sets with the largest and smallest printed mean; ties all "
        "count.",
        "W/T/L: numbers of data sets on which {mamc_bs} is better than, equal to, and worse than "
        "the machine (Welch's t-test at 95 %).",
        "Published counts are computed from the published means; the paper prints best/worst 2/0 "
        "for MAMC_bsg and 0/11 for MAMC.",
    ],
    metric=METRIC,
    spread=STANDARD_DEVIATION,
)


def _times(sheet: Sheet) -> list[Grid]:
    """Return CPU seconds and, in a second block, their ratios to the MAMC's.

    The paper used another computer and program, so that only the ratios can be compared.
    """
    # Published ratios are shown if the MAMC itself was not run.
    names = list(dict.fromkeys((*sheet.machines, "mamc")))
    known = (p for p in sheet.published if p["metric"] == "seconds" and p["value"] is not None)
    printed = {(p["dataset"], p["machine"]): p["value"] for p in known}
    keys = [[place._replace(machine=m) for m in names] for place in sheet.places]
    ours = [[total(sheet, key) for key in line] for line in keys]
    theirs = [[printed.get((key.dataset, key.machine)) for key in line] for line in keys]
    seconds = [pd.DataFrame(side, columns=names, dtype=float) for side in (ours, theirs)]
    ratios = [side.div(side["mamc"].replace(0.0, np.nan), axis=0) for side in seconds]

    def block(name: str, text: Callable[[float], str], sides: list[pd.DataFrame]) -> Grid:
        caption = f"{name}: measured / published"
        texts = [side[sheet.machines].map(text).to_numpy() for side in sides]
        cells = texts[0] + " / " + texts[1]
        rows = [[sheet.name(place), *line] for place, line in zip(sheet.places, cells, strict=True)]
        return Grid(sheet.columns("data", group=caption), rows, caption)

    grids = [block("CPU seconds", seconds_text, seconds), block("Ratio", _ratio_text, ratios)]
    # The published counts are shown as printed, because some published times are lost.
    values = {(row["metric"], row["machine"]): row["value"] for row in sheet.published}
    counts, texts = best_and_worst(-seconds[0][sheet.machines], decimals=None), []
    for m in sheet.machines:
        most: list[Any] = [values.get((metric, m)) for metric in ("best_count", "worst_count")]
        theirs_text = NOTHING if None in most else "{:.0f}-{:.0f}".format(*most)
        texts.append(f"{'-'.join(map(str, counts.get(m, ()))) or NOTHING} / {theirs_text}")
    grids[1].rows.append(["shortest-longest", *texts])
    return grids


def _ratio_text(ratio: float) -> str:
    return NOTHING if np.isnan(ratio) else f"{ratio:.{1 if ratio < 100 else 0}f}"


mamc_table3 = Layout(
    "Table 3 of the MAMC paper: CPU seconds per split, and ratios to the MAMC.",
    title="CPU seconds per split, and ratios to the MAMC (MAMC paper, table 3)",
    published="mamc_table3",
    machines=MAMC_MACHINES,
    blocks=[_times],
    notes=[
        "Selection, training and test on one thread; mean over splits.",
        "Published seconds are times of another computer and program: only ratios are comparable.",
        f"{NOTHING}: lost in the text of the paper, or not run.",
        "Shortest/longest: numbers of data sets on which the machine is fastest and slowest.",
    ],
)

# -- F-SVM -------------------------------------------------------------------------------------


def _wins(sheet: Sheet, side: Side) -> dict[str, list[str]]:
    """Return the number of data sets on which the rounded mean of the F-SVM is larger."""
    means = side["mean"].map(lambda mean: round(mean, 2))
    ours = means["fsvm"] if "fsvm" in means else pd.Series(np.nan, means.index)
    better, known = means.lt(ours, axis=0).sum(), means.notna()[ours.notna()].sum()
    known["fsvm"] = 0
    texts = [f"{better[m]} of {known[m]}" if known[m] else NOTHING for m in means]
    return {f"{sheet.label('fsvm')} better on": texts}


def _milliseconds(sheet: Sheet) -> Iterable[Grid]:
    """Return the training time in ms with the selected parameters, one block per kernel.

    Cells of the published table whose time is lost are marked.
    """
    times = (row for row in sheet.published if row["metric"] == "seconds")
    lost = {(row["dataset"], row["machine"]) for row in times if row["value"] is None}

    def text(key: Key) -> str:
        seconds = total(sheet, key, ("training",))
        ours = NOTHING if seconds is None else f"{1000 * seconds:.1f}"
        return f"{ours} / lost" if (key.dataset, key.machine) in lost else ours

    caption = "CPU milliseconds per training (the published times are lost)."
    heads = data_heads(lambda place: sheet.printed(place.dataset))
    for kernel in sheet.kernels:
        places, name = sheet.places_of(kernel), f"{caption} {kernel_caption(*kernel)}"
        cells = {m: {text(place._replace(machine=m)) for place in places} for m in sheet.machines}
        timed = [machine for machine in sheet.machines if cells[machine] != {NOTHING}]
        yield by_machine(sheet, text, name, heads=heads, places=places, machines=timed)


fsvm_table2 = Layout(
    "Tables II to V of the F-SVM paper: accuracy on eleven sets, and training time.",
    title="Accuracy (%) and training time, measured and published (F-SVM paper)",
    machines=("svm", "rmm", "rsvm_plus", "rsvm_mu_plus", "fsvm"),
    blocks=[partial(paired, caption="Accuracy. {}", decimals=2, count=_wins), _milliseconds],
    notes=[
        "The paper prints means over 100 runs, without a spread.",
        "{fsvm} better on: number of data sets on which its printed mean is larger, out of the "
        "data sets with both means.",
        "The superscripts of the two headings R-SVM are lost in the text of the paper; their order "
        "is taken from its public abstract.",
    ],
    metric=METRIC,
)

fsvm_table3 = Layout(
    "Table III of the F-SVM paper: training time with the linear kernel.",
    title="Training time with the linear kernel, measured / published (F-SVM paper, table III)",
    published="fsvm_table3",
    machines=fsvm_table2.machines,
    blocks=[_milliseconds],
    notes=["Lost: the cell is in the paper's table, but its value is lost in the surviving text."],
)

fsvm_table5 = Layout(
    "Table V of the F-SVM paper: training time with the RBF kernel.",
    title="Training time with the RBF kernel, measured / published (F-SVM paper, table V)",
    published="fsvm_table5",
    machines=fsvm_table2.machines,
    blocks=[_milliseconds],
    notes=[*fsvm_table3.notes, "The surviving text ends after Ringnorm."],
)


def _fsvm_sizes(sheet: Sheet) -> Grid:
    from mmbench.datasets import card_names, load_card

    printed = {(row["dataset"], row["metric"]): row["value"] for row in sheet.published}
    rows = []
    for name in sheet.datasets:
        expect = load_card(name).expect if name in card_names() else None
        ours = (expect.shape[0], expect.n_classes, expect.shape[1]) if expect else (NOTHING,) * 3
        theirs = (printed.get((name, f"n_{size}")) for size in ("samples", "classes", "attributes"))
        texts = (NOTHING if value is None else f"{value:.0f}" for value in theirs)
        rows.append([sheet.printed(name), *map(str, ours), *texts])
    heads = ("rows", "classes", "features")
    columns = (*words("data"), *numbers(*heads), *numbers(*(f"{head}, paper" for head in heads)))
    return Grid(columns, rows)


fsvm_table1 = Layout(
    "Table I of the F-SVM paper: rows, classes and inputs of the data sets.",
    title="The data sets (F-SVM paper, table I)",
    published="fsvm_table1",
    blocks=[_fsvm_sizes],
    notes=[
        "The paper's table describes the UCI sets with all classes; its results come from the "
        "two-class sets of Raetsch.",
    ],
)


def _objectives(sheet: Sheet) -> Grid:
    rows = []
    for place in sheet.places:
        texts = [_objective_text(sheet, place, machine) for machine in sheet.machines]
        fits = sheet.per_pair(place._replace(machine="fsvm")).values()
        counts = [pairs[0]["extra"]["rounds"] for pairs in fits if "rounds" in pairs[0]["extra"]]
        rounds = f"{min(counts)} to {max(counts)}" if counts else NOTHING
        rows.append([sheet.name(place), *texts, rounds])
    columns = (*sheet.columns("data"), *numbers("rounds by the paper's rule"))
    caption = "(F - F*) / F* in per cent: mean over splits (maximum)"
    return Grid(columns, rows, caption)


def _objective_text(sheet: Sheet, place: Key, machine: str) -> str:
    """Return mean and maximum of ``(F - F*) / F*`` in per cent over the common splits.

    F* is the objective of `fsvm_opt`. For `fsvm_opt`, the gap to its lower bound is returned.
    """
    ours, optima = (sheet.per_pair(place._replace(machine=m)) for m in (machine, "fsvm_opt"))
    values = []
    for split in sorted(ours.keys() & optima.keys()):
        # All pairs of classes share one matrix M and one objective, stored in each certificate.
        at, optimum = ours[split][0]["objective"], optima[split][0]["objective"]
        low = optima[split][0]["bound"] if machine == "fsvm_opt" else optimum
        if None not in (at, low) and optimum:
            values.append(100 * (at - low) / optimum)
    form = ".0e" if machine == "fsvm_opt" else ".1f"
    return f"{fmean(values):{form}} ({max(values):{form}})" if values else NOTHING


def _accuracies(sheet: Sheet) -> Grid:
    write = partial(measured_text, decimals=2)
    return results(sheet, METRIC, write, "Accuracy (%)", data_heads(sheet.head))


fsvm_rounds = Layout(
    "How far the F-SVM's alternation stops from its own optimum: gap and accuracy after some "
    "rounds.",
    title="The F-SVM after some rounds of its alternation, and at its optimum",
    # From the semi-whitening start to the optimum; `fsvm` uses the paper's stopping rule. All
    # machines use the C and rho that `fsvm` selects on the split, so they share the objective F.
    machines=("fsvm_semi", "fsvm_1", "fsvm_2", "fsvm_5", "fsvm_15", "fsvm", "fsvm_opt"),
    others=False,
    blocks=[_objectives, _accuracies],
    notes=[
        "{fsvm}: the paper's stopping rule (15 rounds, or a decrease of F by less than 0.1 %).",
        "All columns use the C and rho that {fsvm} selects.",
        "F*: objective of {fsvm_opt}, whose column shows the relative distance to a lower bound.",
    ],
    metric=METRIC,
)

#: Image descriptor of each data set.
DESCRIPTORS = {"lfw_pairs": "pixels", "lfw_pairs_hog": "HOG", "lfw_pairs_lbp": "LBP"}


def _descriptors(sheet: Sheet) -> Grid:
    def name(place: Key) -> str:
        return sheet.head(place, name=DESCRIPTORS.get(place.dataset, place.dataset))

    kernel = data_heads(lambda place: kernel_text(place.kernel, place.degree), "kernel")
    heads = {**data_heads(name, "descriptor"), **kernel}
    return results(sheet, METRIC, partial(measured_text, decimals=2), heads=heads)


lfw = Layout(
    "Verification on LFW: mean accuracy and standard error over the ten folds of view 2.",
    title="Verification accuracy (%) on LFW, view 2, image-restricted (an extension)",
    blocks=[_descriptors, by_stage],
    notes=["No published values: the section on LFW of the F-SVM paper is lost."],
    metric=METRIC,
    runs="folds",
)
