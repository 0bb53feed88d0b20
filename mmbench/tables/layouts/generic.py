"""Two layouts for any experiment: `generic` and `machines`.

`generic` has one row per place and one column per machine; `machines`, for many machines on few
data sets, has one block per place and one row per machine.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mmbench.jobs.planned import Key
from mmbench.results.cells import BOUND, CONFUSION, METRIC, WORST_CLASS
from mmbench.results.frames import Results
from mmbench.results.pairwise import incomplete, sign_of
from mmbench.tables.blocks import (
    CHOICES,
    by_stage,
    chosen_text,
    confusions,
    definitions,
    grids,
    label,
    metric_text,
    published_rest,
    total_with_search,
    values,
    with_search_text,
)
from mmbench.tables.compose import compose
from mmbench.tables.names import caption_of, head, notes_of
from mmbench.tables.text import (
    Grid,
    Shown,
    Table,
    Text,
    measured,
    numbers,
    seconds_text,
    words,
)

#: Metrics that are shown without being requested if the paper states them.
IF_PUBLISHED = (BOUND, WORST_CLASS)


def generic(results: Results) -> Table:
    """Return a table of the requested metrics and the CPU seconds, with one column per machine.

    If no metric is requested, the table shows accuracies, or error counts if a paper states only
    error counts.
    """
    published = {*results.cells.metric[results.cells.published.notna()]}
    if results.metrics:
        title, blocks = ", ".join(map(label, results.metrics)), [*grids(results, results.metrics)]
        blocks.append(by_stage(results))
        return compose(results, title, blocks, *definitions(results), metric=results.metrics)
    metric = results.metric
    title = "Accuracy (%)" if metric == METRIC else "Errors on the test part"
    title += ", measured / published" * (metric in published)
    write = partial(measured, decimals=None if metric == "errors_count" else 1)
    blocks = [values(results, metric, write, rest=published_rest)]
    more = [name for name in IF_PUBLISHED if name in published]
    blocks += [*grids(results, more), by_stage(results)]
    return compose(results, title, blocks, metric=[metric, *more])


def machines(results: Results) -> Table:
    """Return a table with one block per data set, kernel and training size. In each block, the
    machines are sorted by their results. Machines with missing splits are listed last.
    """
    shown = [name for name in results.metrics if name != CONFUSION] or [METRIC]
    grids = [_ranked(results, place, shown) for place in results.places]
    grids += confusions(results) if CONFUSION in results.metrics else []
    about = definitions(results)
    if results.has_records:
        about.append(f"Selected: {CHOICES}.")
    if texts := with_search_text(results, results.columns):
        about.append(f"CPU seconds: selection, training and test.{texts}")
    return compose(
        results, "Machines, the best first", grids, *about, metric=shown[0], choices=False
    )


def _ranked(results: Results, place: Key, shown: list[str]) -> Grid:
    first, rows = shown[0], list[list[Shown]]()
    keys = [place._replace(machine=machine) for machine in results.columns]
    partial = incomplete(results, keys, first)

    def rank(key: Key) -> tuple[bool, bool, float]:
        value = results.value(key, first)
        return value is None, key in partial, -sign_of(first) * (value or 0.0)

    for key in sorted((key for key in keys if results.row(key, first).metric), key=rank):
        best, *rest = (metric_text(results.row(key, name)) for name in shown)
        row, seconds = results.row(key, first), seconds_text(total_with_search(results, key))
        cited = Text(*best, notes=notes_of(row), row=row)
        others, chosen = map("".join, rest), chosen_text(results, key)
        rows.append([results.label(key.machine), cited, *others, seconds, chosen])
    heads = numbers(*map(label, shown), "CPU seconds per split")
    kernel = caption_of(results, (place.kernel, place.degree), place.size)
    caption = replace(head(results, place, name=place.dataset), tail=f": {kernel}")
    return Grid((*words("machine"), *heads, *words("selected")), rows, caption)
