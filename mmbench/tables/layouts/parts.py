"""What layouts share: looking up cells, writing numbers, marks, legend and footnotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mmbench.jobs.plan import Key
from mmbench.machines import alias_of
from mmbench.tables.cells import MISSING, PUBLISHED_ONLY
from mmbench.tables.frame import NO_TARGET, SIZE, rows_of
from mmbench.tables.model import IN_BAND, NOTHING, OUT_OF_BAND, Facts

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]

KERNEL_LABELS = {"linear": "Linear kernel", "poly": "Polynomial kernel", "rbf": "RBF kernel"}

#: A line or block of a table: the kernel and its degree.
KernelKey = tuple[str, int | None]


class Cells:
    """The rows of a long table by cell and metric, and the orders in which its parts occur."""

    def __init__(self, frame: pd.DataFrame):
        self._rows = {(self._key(row), row["metric"]): row for row in rows_of(frame)}
        self.keys = list(dict.fromkeys(key for key, _ in self._rows))
        self.datasets = list(dict.fromkeys(key.dataset for key in self.keys))
        self.machines = list(dict.fromkeys(key.machine for key in self.keys))
        self.kernels = list(dict.fromkeys((key.kernel, key.degree) for key in self.keys))
        #: One key a line of a table with a column a machine: data set, kernel, degree and size.
        self.places = list(dict.fromkeys(key._replace(machine="") for key in self.keys))

    def in_order(self, first: Sequence[str]) -> list[str]:
        """Return the machines, those that a paper has first and in its order."""
        rest = [machine for machine in self.machines if machine not in first]
        return [*(machine for machine in first if machine in self.machines), *rest]

    @staticmethod
    def _key(row: Row) -> Key:
        key = Key(row["dataset"], row["kernel"], row["degree"], row["machine"])
        return key._replace(size=row.get(SIZE))

    def get(self, key: Key, metric: str) -> Row | None:
        """Return a row, or None where the table has none."""
        return self._rows.get((key, metric))

    def value(self, key: Key, metric: str) -> float | None:
        """Return a measured value, or None."""
        row = self.get(key, metric)
        return row["measured"] if row else None


class Footnotes:
    """Numbers the remarks that cells cite; equal remarks share a number."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def cite(self, *texts: str) -> str:
        """Return the marks of some remarks, such as ``[1][2]``; empty ones have none."""
        marks = []
        for text in filter(None, texts):
            if text not in self.texts:
                self.texts.append(text)
            marks.append(f"[{self.texts.index(text) + 1}]")
        return "".join(marks)


def machine_label(machine: str) -> str:
    """Return how a machine is called in tables."""
    return alias_of(machine).label


def printed_name(dataset: str, facts: Facts) -> str:
    """Return a data set's name as the paper prints it, else our own."""
    table = facts.published
    if table is None or not (table["dataset"] == dataset).any():
        return dataset
    return str(table.loc[table["dataset"] == dataset, "printed_dataset"].iloc[0])


def place_name(cells: Cells, place: Key, facts: Facts) -> str:
    """Return the head of a line; a kernel is named only where there are several."""
    name = printed_name(place.dataset, facts)
    several = len(cells.kernels) > 1
    return join(name, f"({kernel_text(place.kernel, place.degree)})" if several else "")


def dataset_label(dataset: str, name: str, facts: Facts, notes: Footnotes) -> str:
    """Return the shown name of a data set, citing where the data differ from the paper's."""
    return join(name, notes.cite(*facts.deviations.get(dataset, ())))


def measured_text(row: Row | None, decimals: int | None = None) -> str:
    """Return our value with its standard error over partitions, or why there is none."""
    if row is None or row["status"] == PUBLISHED_ONLY:
        return NOTHING
    if row["measured"] is None:
        return str(row["status"]).replace("_", " ") if row["status"] != MISSING else "not run"
    if decimals is None:
        decimals = 0 if float(row["measured"]).is_integer() and row["sd"] is None else 1
    spread = f" ({row['se']:.{decimals}f})" if row["sd"] is not None else ""
    return f"{row['measured']:.{decimals}f}{spread}"


def published_text(row: Row | None, decimals: int | None = None) -> str:
    """Return the paper's value, with the spread that it prints."""
    if row is None or row["published"] is None:
        return NOTHING
    value, spread = row["published"], row["published_spread"]
    text = f"{value:g}" if decimals is None else f"{value:.{decimals}f}"
    if spread is None:
        return text
    return f"{text} ({spread:g})" if decimals is None else f"{text} ({spread:.{decimals}f})"


def verdict_mark(row: Row | None) -> str:
    """Return the mark of the comparison, empty where there was none."""
    if row is None or row["in_band"] is None:
        return ""
    return IN_BAND if row["in_band"] else OUT_OF_BAND


def kernel_text(kernel: str, degree: int | None) -> str:
    """Return kernel and degree in short."""
    return kernel if degree is None else f"{kernel} {degree}"


def kernel_caption(kernel: str, degree: int | None) -> str:
    """Return kernel and degree as the head of a block."""
    label = KERNEL_LABELS[kernel]
    return label if degree is None else f"{label}, degree {degree}"


def remarks(row: Row | None, kernel: bool = True) -> list[str]:
    """Return what a cell cites: its own note, named, and why its published value is no target.

    The second has no name, as most often it is that of a whole column; "not run" is not cited.

    Parameters
    ----------
    row : mapping, optional
    kernel : bool, default=True
        Whether the kernel belongs to the name.

    Examples
    --------
    >>> row = {"machine": "svm", "dataset": "iris", "kernel": "rbf", "degree": None}
    >>> row |= {"status": "trivial", "measured": 50.0}
    >>> row["note"] = "of 3 fits 1 trivial; the published value is no target: it is lost"
    >>> remarks(row)
    ['SVM on iris (rbf): of 3 fits 1 trivial', 'the published value is no target: it is lost']
    """
    if row is None or not row["note"]:
        return []
    own, mark, reason = row["note"].partition(NO_TARGET)
    own = own.removesuffix("; ")
    if (row["status"], row["measured"]) == (MISSING, None):
        own = ""
    place = f"{machine_label(row['machine'])} on {row['dataset']}"
    if kernel:
        place += f" ({kernel_text(row['kernel'], row['degree'])})"
    return [text for text in (f"{place}: {own}" if own else "", mark + reason) if text]


def join(*parts: str) -> str:
    """Put parts of a cell beside each other, leaving out empty ones."""
    return " ".join(part for part in parts if part)


def seconds_text(value: float | None) -> str:
    """Return CPU seconds with about three figures.

    Examples
    --------
    >>> seconds_text(0.1234), seconds_text(12.34), seconds_text(1234.5), seconds_text(0.0)
    ('0.12', '12.3', '1234', '0')
    >>> seconds_text(0.0012)
    '<0.01'
    """
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    if value < 0.01:
        return "<0.01"
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def legend(
    cells: Cells,
    metric: str,
    spread: str = "In parentheses: standard error over {} partitions.",
    band: str = "within 2 standard errors of the measured one",
) -> list[str]:
    """Return what the marks of a table mean, as far as they occur for a metric.

    `spread` says what stands beside a mean, with a place for the number of partitions; `band` says
    where a published value counts as met.
    """
    rows = [row for key in cells.keys if (row := cells.get(key, metric))]
    lines = []
    if any(row["in_band"] is not None for row in rows):
        lines.append(
            f"{IN_BAND} the published value lies {band}, "
            f"{OUT_OF_BAND} it does not; no mark: not compared."
        )
    single = [row for row in rows if row["measured"] is not None and row["n"] == 1]
    if single and any(row["in_band"] is not None for row in single):
        lines.append("The standard error of a single run is binomial: sqrt(e (1 - e/n)).")
    counts = sorted({int(row["n"]) for row in rows if row["sd"] is not None})
    if counts:
        text = " or ".join(str(count) for count in counts)
        lines.append(spread.format(text))
    if any(row["status"] == PUBLISHED_ONLY for row in rows):
        lines.append(f"{NOTHING} not run; the published value alone is shown.")
    return lines


def certificates(cells: Cells) -> list[str]:
    """Return one line on the worst certificate of each machine."""
    lines = []
    for machine in cells.machines:
        keys = [key for key in cells.keys if key.machine == machine]
        worst = [_largest(cells, keys, metric) for metric in ("worst_violation", "worst_gap")]
        if None not in worst:
            lines.append(f"{machine_label(machine)} {worst[0]:.1e} / {worst[1]:.1e}")
    if not lines:
        return []
    return [f"Worst constraint violation / relative gap over all fits: {', '.join(lines)}."]


def _largest(cells: Cells, keys: list[Key], metric: str) -> float | None:
    values = [value for key in keys if (value := cells.value(key, metric)) is not None]
    return max(values, default=None)
