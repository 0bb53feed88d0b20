"""Headings, captions and footnotes: how tables name machines, data sets, kernels and cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mmbench.jobs.planned import Key, grouped
from mmbench.results.cells import MISSING, Row
from mmbench.results.frames import KernelKey, Results
from mmbench.tables.text import Column, Note, Shown, Text, join, kernel_text, numbers, words

#: If a table has at least this number of data sets, a footnote on all data sets does not list their
#: names.
MANY = 4
KERNEL_LABELS = {"linear": "Linear kernel", "poly": "Polynomial kernel", "rbf": "RBF kernel"}


def columns_of(
    results: Results, *heads: str, machines: Sequence[str] | None = None, group: str = ""
) -> tuple[Column, ...]:
    """Return the columns of a table block: left-aligned columns with the headings `heads`, then
    one column per machine.
    """
    names = results.columns if machines is None else machines
    return (*words(*heads), *numbers(*map(results.label, names), group=group))


def printed(results: Results, dataset: str) -> str:
    """Return the name of a data set in the published table, or else its name in mmbench."""
    names = (row["printed_dataset"] for row in results.published if row["dataset"] == dataset)
    return next(names, dataset)


def name_of(results: Results, place: Key) -> str:
    """Return the name of a data set in the paper, with the name of the kernel if the table has
    several kernels.
    """
    kernel = f"({kernel_text(place.kernel, place.degree)})" if len(results.kernels) > 1 else ""
    return join(printed(results, place.dataset), kernel)


def caption_of(results: Results, kernel: KernelKey, size: int | None = None) -> str:
    """Return the full name of a kernel as a caption, with its degree and the training size.

    Classifiers of other packages are mentioned, since they do not use this kernel.
    """
    degree = "" if kernel[1] is None else f", degree {kernel[1]}"
    names = [KERNEL_LABELS[kernel[0]] + degree, "other packages"]
    machines = {key.machine for key in results.keys if (key.kernel, key.degree) == kernel}
    others = sorted({machine in results.foreign for machine in machines})
    return " and ".join(map(names.__getitem__, others)) + (f", {size} rows" if size else "")


def head(results: Results, place: Key, name: str = "") -> Text:
    """Return `name`, by default the result of `name_of`, with the footnotes on the data set."""
    texts = results.facts["deviations"].get(place.dataset, ())
    notes = tuple(Note(text, Key(place.dataset, "", None, "")) for text in texts)
    return Text(name or name_of(results, place), notes=notes)


def shown(value: tuple[str, str], row: Row, rest: str = "", kernel: bool = True) -> Shown:
    """Return a mean and its uncertainty with the comparison mark and the footnotes of the cell."""
    if not row.metric:
        return "".join(value) + rest
    return Text(*value, rest, row.mark, notes_of(row, kernel), row)


def notes_of(row: Row, kernel: bool = True) -> tuple[Note, ...]:
    """Return the footnotes to a cell.

    A first footnote contains the note of the cell, after the names of the machine and the data
    set. If `kernel` is true, the footnote also names the kernel. If the machine was not run, the
    first footnote is left out. If the published value is not usable for a comparison, a second
    footnote states the reason. The second footnote names no cell, since the same reason often
    applies to a whole column.
    """
    if not row.metric:
        return ()
    key = row.key if kernel else row.key._replace(kernel="", degree=None)
    not_run = (row.status, row.measured) == (MISSING, None)
    found = (Note("" if not_run else row.note, key), Note(row.objection))
    return tuple(note for note in found if note.text)


def about(results: Results, keys: Iterable[Key]) -> str:
    """Return a text that names the machines, data sets and kernels of cells. Data sets with the
    same machines and kernel are listed together. Training sizes are named if `keys` contains only
    some of the sizes.
    """

    def kernel_of(key: Key, sizes: list[int | None]) -> str:
        some = f"{', '.join(map(str, dict.fromkeys(sizes)))} rows" if {*sizes} < every else ""
        kernel = "" if key.machine in results.foreign else kernel_text(key.kernel, key.degree)
        return ", ".join(filter(None, [kernel, some]))

    every = {key.size for key in results.keys}
    sizes = grouped((key._replace(size=None), key.size) for key in keys)
    machines = grouped(
        ((key.dataset, kernel_of(key, own)), key.machine and results.label(key.machine))
        for key, own in sizes.items()
    )
    datasets = grouped(
        ((", ".join(names), kernel), dataset) for (dataset, kernel), names in machines.items()
    )
    many = max(len(results.datasets), MANY)
    return "; ".join(
        join(
            f"{names} on" if names else "",
            ", ".join(found) if len(found) < many else f"all {many} data sets",
            f"({kernel})" if kernel else "",
        )
        for (names, kernel), found in datasets.items()
    )
