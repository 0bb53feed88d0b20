"""Tables and pictures of the benchmarks, from the files in ``benchmarks/results``.

``{peers} TASK`` writes the CPU times of a task, and ``{peers} TASK excess`` the excess objectives.
The pictures are ``pictures/peers_*.svg``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pandas as pd
from docutils import nodes
from docutils.statemachine import StringList
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mmbench.machines import MACHINES, alias_of
from mmbench.tables.figures.style import COLOURS, STYLE

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "peers.csv"
NAMES = {
    "mnist": "MNIST",
    "letter": "Letter",
    "ida_banana": "Banana",
    "ida_image": "Image",
    "usps": "USPS",
    "generated": "generated",
    "documents": "documents",
    "SVC": "SVC of scikit-learn",
    "libsvm": "libsvm",
    "Intel": "SVC of Intel",
    "LinearSVC": "LinearSVC (liblinear)",
    "LinearDiscriminantAnalysis": "LinearDiscriminantAnalysis (lsqr)",
    "reference": "reference solver",
    "clarabel": "one cone program of Clarabel",
    "rmm 0.1": "RMM, B near 1",
}
#: Headings of the first table columns, by the column name in the file.
HEADS = {"data": "Data", "n": "Rows", "machine": "Machine", "kernel": "Kernel"}
#: Columns that distinguish the rows of a table; other settings are summarised by a range.
LINES = {
    "kernel": ["data", "n", "d"],
    "classes": ["data", "n", "d"],
    "linear": ["data", "n", "d"],
    "lda": ["data", "n", "d"],
    "programs": ["machine", "kernel"],
    "search": ["machine", "data", "n"],
}
#: Questions that `answers` answers, by task.
QUESTIONS = {
    "kernel": "[SVM with a kernel](#how-fast-is-the-svm-with-a-kernel)",
    "classes": "[many classes](#how-fast-are-many-classes-and-predictions)",
    "linear": "[linear SVM](#how-fast-is-the-linear-svm)",
    "programs": "[every machine against its general solver]"
    "(#how-does-each-machine-compare-with-its-general-solver)",
    "search": "[grid search](#how-fast-is-a-grid-search)",
}
Rows = Iterator[list[str]]


def head(words: list[str], numbers: Sequence[str] = (), last: Sequence[str] = ()) -> Rows:
    """Yield the heading of a table: columns of words, of numbers, and of words again."""
    yield [*words, *numbers, *last]
    yield ["---"] * len(words) + ["---:"] * len(numbers) + ["---"] * len(last)


def table_of(task: str) -> pd.DataFrame:
    """Return the measurements of a task, with the column ``kernel``."""
    table = pd.read_csv(FILE)
    table = table[table.task == task]
    return table.assign(kernel=np.where(table.gamma > 0, "RBF", "linear"))


def name_of(value: object) -> str:
    """Return the name of a data set, machine or package."""
    if not isinstance(value, str):
        return f"{value:,}"
    machine = value in MACHINES
    return NAMES.get(value) or (alias_of(value).label if machine else None) or value


def short(value: float) -> str:
    """Return a number with two significant digits and without an exponent."""
    return f"{value:.2g}" if abs(value) < 99.5 else f"{value:,.0f}"


def spanned(values: pd.Series) -> str:
    """Return the median of the values and, if the values differ, their range."""
    values = values.dropna()
    if values.empty:
        return "–"
    low, middle, high = map(short, values.quantile([0, 0.5, 1]))
    return middle if low == high else f"{middle} ({low} to {high})"


def ratios(part: pd.DataFrame) -> pd.Series:
    """Return the ratios of several settings, or the ratio of one setting with its range."""
    ranged = part[["ratio_low", "ratio", "ratio_high"]]
    return part.ratio if len(part) > 1 else ranged.stack()


def compared(task: str, excess: bool = False) -> Rows:
    """Yield the rows of a table of relative CPU times, or of the largest excess objectives."""
    table = table_of(task)
    others = [name for name in dict.fromkeys(table.contender) if name != "mmbench"]
    given = LINES[task]
    sized = given[1:] == ["n", "d"]
    heads = ["Data", "Rows × features"] if sized else [HEADS[name] for name in given]
    yield from head(heads, ["mmbench" if excess else "mmbench, CPU ms", *map(name_of, others)])
    for values, part in table.groupby(given, sort=False):
        parts = {name: part[part.contender == name] for name in ("mmbench", *others)}
        row = [name_of(value) for value in values]
        row = [row[0], "\u00a0×\u00a0".join(row[1:])] if sized else row
        if excess:
            row += [tiny(own.excess.max()) for own in parts.values()]
        else:
            row.append(spanned(1e3 * parts["mmbench"].seconds))
            row += [spanned(ratios(parts[name])) for name in others]
        yield row


def answers() -> Rows:
    """Yield one row per task: in how many settings the fastest other package leads, and how far."""
    counts = ["Settings", "mmbench is slower in", "Fastest other"]
    yield from head(["Question"], counts, ["Furthest behind"])
    for task, question in QUESTIONS.items():
        table = table_of(task)
        own = table.contender.isin(["mmbench", *MACHINES])
        others = table[~own & np.isfinite(table.ratio)]
        setting = ["data", "machine", "n", "d", "C", "gamma"]
        fastest = others.loc[others.groupby(setting, dropna=False).ratio.idxmin()]
        slower = fastest[fastest.ratio < 1]
        worst = fastest.loc[fastest.ratio.idxmin()]
        where = f"{name_of(worst.contender)}: {name_of(worst.data)}, {worst.n:,} rows"
        machine = f", {name_of(worst.machine)}" if task == "programs" else ""
        behind = f"{short(worst.ratio)} ({where}{machine})" if len(slower) else "–"
        yield [question, str(len(fastest)), str(len(slower)), spanned(fastest.ratio), behind]


def tiny(value: float) -> str:
    """Return a number with one significant digit and an exponent; a dash replaces NaN."""
    return "–" if np.isnan(value) else f"{value:.0e}".replace("-", "−") if value else "0"


def predictions() -> Rows:
    """Yield the rows of the table of prediction times."""
    table = table_of("classes")
    names = list(dict.fromkeys(table.contender))
    yield from head(["Data"], ["Rows predicted", "mmbench, CPU ms", *map(name_of, names[1:])])
    for (data, n), part in table.groupby(["data", "n"], sort=False):
        own = part.set_index("contender")
        for rows in (1, 10000):
            seconds = own[f"predict_{rows}"]
            ranges = own[[f"predict_{rows}_low", f"predict_{rows}_high"]]
            ranges = ranges.assign(ratio=seconds / seconds["mmbench"]).reindex(names[1:])
            texts = (spanned(ratios) for _, ratios in ranges.iterrows())
            title = f"{name_of(data)}, {n:,} rows"
            yield [title, f"{rows:,}", short(1e3 * seconds["mmbench"]), *texts]


def growth() -> Rows:
    """Yield one row per kernel and machine: time, ratio to the SVM, exponent of n and memory."""
    table = table_of("growth").dropna(subset=["seconds"])
    numbers = ["Rows", "CPU s", "SVM = 1", "Exponent of n", "Memory, MB"]
    yield from head(["Kernel", "Machine"], numbers)
    for kernel, whole in table.groupby("kernel", sort=False):
        for name, own in whole.groupby("contender", sort=False):
            last = own.sort_values("n").iloc[-1]
            power = slope(own)
            yield [
                str(kernel),
                name_of(name),
                f"{last.n:,}",
                short(last.seconds),
                spanned(ratios(own[own.n == last.n])),
                "–" if np.isnan(power) else f"{power:.1f}",
                f"{last.memory_mb:.0f}",
            ]


def slope(own: pd.DataFrame, size: str = "n") -> float:
    """Return the exponent of the size between the two largest sizes; NaN if there is one size."""
    last = own.sort_values(size).iloc[-2:]
    if len(last) < 2:
        return np.nan
    return float(np.diff(np.log(last.seconds))[0] / np.diff(np.log(last[size]))[0])


def first() -> Rows:
    """Yield the CPU seconds of the first fit of each machine, from the least to the largest."""
    table = table_of("first").set_index(["contender", "kernel"])
    yield from head(["Machine"], ["Linear kernel, CPU s", "RBF kernel, CPU s"])
    for name in dict.fromkeys(table.index.get_level_values("contender")):
        row = [name_of(name)]
        for kernel in ("linear", "RBF"):
            least, spread = table.loc[(name, kernel), ["seconds", "spread"]]
            texts = dict.fromkeys(f"{value:.2f}" for value in (least, least * spread))
            row.append("–" if np.isnan(least) else " to ".join(texts))
        yield row


def source() -> Rows:
    """Yield the packages, their versions and the processor."""
    table = pd.read_csv(FILE)
    yield from head(["Package", "Version"])
    yield from (text.rsplit(" ", 1) for text in sorted(set(table.version), key=str.lower))
    yield ["processor", ", ".join(sorted(set(table.processor.dropna())))]
    yield ["repeats per measurement", spanned(table.repeats)]
    finite, failed = table.spread[np.isfinite(table.spread)], np.isinf(table.spread).sum()
    yield ["largest time divided by least time of the repeats", spanned(finite)]
    if failed:  # the spread of a failed process is infinite
        yield ["measurements with a failed repeat, which does not count", str(failed)]


def routes() -> Rows:
    """Yield the table that compares special with general methods, from ``routes.csv``."""
    texts = {
        "inverse": ["Σ-SVM, RBF kernel", "a decomposition of the Gram matrix"],
        "low rank": ["MMRM, overlapping classes in the plane", "the whole Gram matrix"],
        "ridge path": ["KLDA, eight values of η", "a factor in float64 for each η"],
    }
    table = pd.read_csv(FILE.with_name("routes.csv"))
    yield from head(["Problem", "Compared with"], ["Rows", "Times faster", "Relative difference"])
    for row in table.itertuples():
        faster = spanned(pd.Series([row.ratio_low, row.ratio, row.ratio_high]))
        yield [*texts[row.route], f"{row.n:,}", faster, f"{row.difference:.0e}"]


def gaps(kernel: str) -> Rows:
    """Yield one row per solver with a kernel, from ``audit_svms.csv``: the median and largest gaps
    over the data sets per penalty, the changed labels, the CPU time and the warnings.
    """
    table = pd.read_csv(FILE.with_name("audit_svms.csv"))
    table = table[table.kernel == kernel]
    penalties = sorted(set(table.C))
    columns = [*(f"C = {C:g}" for C in penalties), "Labels", "CPU ms", "Warned"]
    yield from head(["Solver"], columns)
    for solver, own in table.groupby("solver", sort=False):
        cells = [own.gap[own.C == C] for C in penalties]
        labels = 100 * own.labels_changed.sum() / own.n.sum()
        yield [
            str(solver),
            *(f"{tiny(cell.median())} ({tiny(cell.max())})" for cell in cells),
            f"{labels:.2f} %",
            f"{short(1e3 * own.seconds.median())} ({short(1e3 * own.seconds.max())})",
            f"{own.warned.sum()} of {len(own)}",
        ]


def runner() -> Rows:
    """Yield the table of the runner's cost, from ``runner.csv``."""
    texts = {
        "whole run": "whole run of `usps_rbf.yaml` and its table",
        "work": "preparation, selection, training and test",
        "compiled code": "loading compiled code, once per worker",
        "other": "starting Python, imports, planning, records and tables",
        "local submission": "submitting one job, local processes",
        "Dask submission": "submitting one job, Dask cluster",
        "table per record": "table of 100,000 records, per record",
        "scan per record": "reading 100,000 records before a run continues, per record",
    }
    yield from head(["Part"], ["CPU ms", "Share of the whole run"])
    for row in pd.read_csv(FILE.with_name("runner.csv")).itertuples():
        share = "–" if np.isnan(row.share) else f"{short(100 * row.share)} %"
        yield [texts[row.part], short(1e3 * row.seconds), share]


def mmrm_grid() -> Rows:
    """Yield the table of the MMRM's certificates on its grid, from ``mmrm_grid.csv``."""
    table = pd.read_csv(FILE.with_name("mmrm_grid.csv"))
    total = table[["fits", "optimal", "trivial", "at_limit"]].sum()
    cells = {
        "Training sets": len(table),
        "Rows": f"{table.n.min()} to {table.n.max()}",
        "Fits": total.fits,
        "Optimal": total.optimal,
        "Trivial": total.trivial,
        "Other statuses": total.fits - total.optimal - total.trivial,
        "At the coefficient limit": total.at_limit,
        "Largest relative gap": tiny(table.gap.max()),
    }
    yield from head([], list(cells))
    yield list(map(str, cells.values()))


def tests_over_splits() -> Rows:
    """Yield the levels and the power of tests over splits, from ``tests_over_splits.csv``."""
    table = pd.read_csv(FILE.with_name("tests_over_splits.csv"))
    shifts = ("0.5", "1", "2", "4")
    heads = ["paired t-test: level", "corrected t-test: level", "power", "rule: level", "power"]
    yield from head(["Protocol"], heads)
    for protocol, own in table.groupby("protocol", sort=False):
        spread = np.sqrt((own.rule * (100 - own.rule) / own.pools).sum()) / len(own)
        texts = [level_of(own.t), level_of(own.nb), powers(own, "nb", shifts)]
        yield [
            str(protocol),
            *texts,
            f"{level_of(own.rule)} ± {spread:.1f}",
            powers(own, "rule", shifts),
        ]


def draws() -> Rows:
    """Yield how far seeds move means, from ``draws.csv``."""
    table = pd.read_csv(FILE.with_name("draws.csv"))
    numbers = ["Splits", "Standard deviation", "Largest range", "Ratio"]
    yield from head(["Table", "A seed draws"], numbers)
    for (name, drawn), own in table.groupby(["table", "drawn"], sort=False):
        cells = own.groupby(["dataset", "machine"])
        sd, spread = cells["mean"].std(), cells["mean"].max() - cells["mean"].min()
        ratio = sd / cells.se.mean()
        values = [f"{sd.median():.2f}", f"{spread.max():.1f}", f"{ratio.median():.2f}"]
        yield [f"`{name}`", drawn, str(own.n.max()), *values]


def level_of(values: pd.Series) -> str:
    """Return a mean percentage, or a dash without values."""
    return "–" if values.isna().all() else f"{values.mean():.1f}"


def powers(own: pd.DataFrame, test: str, shifts: tuple[str, ...]) -> str:
    """Return the mean percentages of found differences."""
    means = own[[f"{test} {shift}" for shift in shifts]].mean()
    return "–" if means.isna().any() else "\u2002".join(f"{mean:.0f}" for mean in means)


def m4_complexity() -> Rows:
    """Yield the exponents of the M4's times, from ``m4_complexity.csv``."""
    texts = {
        "interior point": "interior point (default)",
        "cone program": "cone program, one cone per class",
        "rho search": "reference: the same, one program per ρ",
        "cone per row": "cone program for one ρ, one cone per row",
    }
    table = pd.read_csv(FILE.with_name("m4_complexity.csv"))
    heads = ["Exponent of N", "largest N × n: CPU s", "Exponent of n", "largest N × n: CPU s"]
    yield from head(["Algorithm"], heads)
    for route, whole in table.groupby("route", sort=False):
        row = [texts[route]]
        for series, size in (("rows", "n"), ("features", "d")):
            own = whole[whole.series == series].sort_values(size)
            last = own.iloc[-1]
            power = f"{slope(own, size):.1f}".replace("-", "−")
            row += [power, f"{last.n:,} × {last.d:,}: {short(last.seconds)}"]
        yield row


#: Functions that yield the rows of a table other than `compared`, by the name of the table.
TABLES = {f"gaps_{kernel}": partial(gaps, kernel) for kernel in ("linear", "rbf")}
SINGLE = (answers, growth, first, predictions, source, routes, runner, mmrm_grid)
TABLES |= {f.__name__: f for f in (*SINGLE, tests_over_splits, draws, m4_complexity)}


class Peers(SphinxDirective):
    """``{peers} TASK``: CPU times of a task; ``{peers} TASK excess``: largest excess objectives."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        task, *excess = self.arguments
        rows = TABLES[task]() if task in TABLES else compared(task, bool(excess))
        lines = [f"| {' | '.join(row)} |" for row in rows]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, source="peers"), self.content_offset, node)
        self.env.note_dependency(str(FILE))
        return node.children


def ratios_of(canvas: Figure, task: str) -> None:
    """Draw the CPU time of each package relative to mmbench, one row per data set and size."""
    table = table_of(task)
    axes = canvas.subplots()
    places = list(table.groupby(LINES[task], sort=False).groups)
    others = [name for name in dict.fromkeys(table.contender) if name != "mmbench"]
    axes.axvline(1.0, color="0.4", lw=0.8)
    for k, name in enumerate(others):
        own = table[table.contender == name]
        rows = [places.index(tuple(p)) for p in own[LINES[task]].itertuples(index=False)]
        height = np.array(rows) + 0.22 * (k - (len(others) - 1) / 2)
        axes.plot(own.ratio, height, "osD^"[k], color=COLOURS[k], label=name_of(name), alpha=0.8)
    labels = [f"{name_of(data)}\n{n:,} × {d:,}" for data, n, d in places]
    axes.set_yticks(range(len(places)), labels)
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.set_xlabel("CPU time relative to mmbench")
    axes.xaxis.set_major_formatter("{x:g}")
    canvas.set_figheight(0.5 * len(places) + 0.8)
    canvas.legend(loc="outside upper left", ncols=2)


def draw_growth(canvas: Figure, task: str) -> None:
    """Draw CPU seconds against the number of rows: one panel per machine, the others in grey."""
    table = table_of(task).dropna(subset=["seconds"]).sort_values("n")
    names = list(dict.fromkeys(table.contender))
    columns = 5 if canvas.get_figwidth() > 5 else 3
    rows = -(-len(names) // columns)
    canvas.set_figheight(1.4 * rows + 0.5)
    panels = canvas.subplots(rows, columns, sharex=True, sharey=True).ravel()
    for panel, name in zip_longest(panels, names):
        if name is None:
            panel.set_axis_off()
            continue
        for (contender, kernel), line in table.groupby(["contender", "kernel"], sort=False):
            own = contender == name
            style = {"color": COLOURS[kernel == "RBF"] if own else "0.85", "zorder": 2 + own}
            panel.loglog(line.n, line.seconds, lw=1.6 if own else 0.6, **style)
        panel.set_title(name_of(name), fontsize="medium")
        panel.minorticks_off()
    canvas.supxlabel("training rows n", fontsize="medium")
    canvas.supylabel("CPU seconds", fontsize="medium")
    lines = [Line2D([], [], color=COLOURS[k]) for k in (1, 0)]
    canvas.legend(lines, ["RBF kernel", "linear kernel"], loc="outside upper left", ncols=2)


#: Title of each picture, and the function that draws the picture, by task.
PICTURES = {
    "kernel": ("CPU times of SVMs with the RBF kernel relative to mmbench.", ratios_of),
    "linear": ("CPU times of linear SVMs relative to mmbench.", ratios_of),
    "growth": ("CPU seconds of all machines against the number of training rows.", draw_growth),
}


def draw_all(app: Sphinx) -> None:
    """Write the pictures into ``docs/pictures``."""
    folder = Path(app.srcdir) / "pictures"
    folder.mkdir(exist_ok=True)
    with style.context([STYLE, {"font.size": 9}]):
        for width, suffix in ((7.0, ""), (4.0, "_narrow")):
            for task, (title, draw) in PICTURES.items():
                canvas = Figure(figsize=(width, 3), layout="constrained")
                draw(canvas, task)
                canvas.savefig(
                    folder / f"peers_{task}{suffix}.svg",
                    bbox_inches="tight",
                    metadata={"Date": None, "Title": title},
                )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and draw the pictures before the pages are read."""
    app.add_directive("peers", Peers)
    app.connect("builder-inited", draw_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
