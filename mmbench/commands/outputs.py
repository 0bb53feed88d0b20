"""The commands ``table``, ``figure``, ``compare``, ``report``, ``export`` and ``clean``, for stored
records.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mmbench.commands.bundle import write_bundle, write_folders
from mmbench.commands.options import Say, parse_only
from mmbench.datasets.fetch import Places
from mmbench.errors import UserError, check_known, extra
from mmbench.jobs.disk import write_output
from mmbench.jobs.store import CONFIG, RecordStore
from mmbench.results import load
from mmbench.results.beside import beside, narrowed
from mmbench.results.compare import Changes, Subject, absent, joined
from mmbench.results.compare import compare as compare_results
from mmbench.results.folder import folders_in, read_reference, read_results
from mmbench.results.frames import Results
from mmbench.results.unpack import is_bundle
from mmbench.tables.build import check_names, draw_tables, laid_out, tables_of
from mmbench.tables.figures import check_figure, choose, draw_figure
from mmbench.tables.render import csv_text
from mmbench.tables.text import Table

__all__ = ["TableText", "compare", "export", "figure", "report", "table"]

#: One or several results folders of experiments, or folders that contain results folders.
Folders = str | Path | Iterable[str | Path]

#: Formats of output files, by suffix. The first format is the default.
TABLE_FORMATS = {".md": "markdown", ".csv": "csv", ".tex": "latex"}
EXPORT_FORMATS = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet"}


def silent(line: str) -> None:
    """Discard a message."""


class TableText(str):
    """Tables as text in one of the formats of `table`. A notebook shows the tables as HTML."""

    #: Function that returns the tables for a notebook.
    tables: Callable[[], Sequence[Table]] = tuple

    def _repr_html_(self) -> str:
        """Return the tables as HTML."""
        from mmbench.tables.report import tables_as_html

        return tables_as_html(self.tables())


def table(
    results: Folders,
    fmt: str | None = None,
    layout: str | None = None,
    output: str | Path | None = None,
    mix: bool = False,
    say: Say = silent,
    metrics: Iterable[str] = (),
    include_failed: bool = False,
    bold: bool = True,
    block: int | None = None,
    caption: str = "",
    only: Iterable[str] = (),
) -> TableText:
    """Return the tables of results folders, with measured and published values.

    Parameters
    ----------
    results : path or iterable of path
        Results folders of experiments, or folders that contain results folders.
    fmt : {"markdown", "latex", "csv"}, optional
        Format of the text. With every layout, a table in the format ``csv`` has one value per row.
        The suffix of `output` determines the default format. Without `output`, the default is
        Markdown.
    layout : str, optional
        Name of a layout. The default layout is the experiment's layout.
    output : path, optional
        File to which the text is written.
    mix : bool
        Whether one table may contain records of different settings.
    say : callable, optional
        Called with a line for each folder that cannot be read.
    metrics : sequence of str, default=()
        Metrics, computed from stored predictions. The default is the list of metrics in the
        experiment.
    include_failed : bool, default=False
        Whether means and statistical tests include splits with a failed training.
    bold : bool, default=True
        Whether to print the best mean of each row in bold.
    block : int, optional
        Number of the only block that is shown, counted from 1.
    caption : str, optional
        Caption of the first block in LaTeX.
    only : sequence of str, default=()
        Data sets and machines that are shown, as ``dataset=NAME`` or ``machine=NAME``. By default,
        all of them are shown.

    Returns
    -------
    TableText
        The tables as a string, which notebooks show as HTML.

    Raises
    ------
    UserError
        If no folder can be read, if the layout, the format or a metric is unknown, or if the file
        `output` cannot be written.
    """
    output = None if output is None else Path(output)
    fmt, metrics = _format(output, fmt, TABLE_FORMATS), tuple(metrics)
    check_names(layout, metrics)
    read = _side_by_side(results, mix, say, include_failed)
    if only:
        read = [narrowed(one, _wanted(one, only)) for one in read]
    text = draw_tables(read, fmt, layout, say, metrics, bold, block, caption)
    if output is not None:
        write_output(output, text.encode(), "cannot write the table")
    found = TableText(text)
    found.tables = lambda: [
        table for one in read for table in tables_of(one, layout, metrics, bold)
    ]
    return found


def _wanted(results: Results, only: Iterable[str]) -> dict[str, set[str]]:
    parts = ("dataset", "machine")
    known = {part: {getattr(key, part) for key in results.keys} for part in parts}
    return parse_only(only, known, results.name)


def figure(name: str, results: Folders, output: str | Path | None = None, say: Say = silent) -> str:
    """Draw a figure from stored records, and return the numbers in the figure as text.

    Parameters
    ----------
    name : str
        Name of a figure, as listed by ``mmbench list figures``.
    results : path or iterable of path
        Results folders of experiments, or folders that contain results folders.
    output : path, optional
        Image file, with the suffix .png, .pdf or .svg. The default file is ``NAME.png``, in the
        folder of the experiment. A figure of a reference table is written to the current folder.
    say : callable, optional
        Called with a line for each folder that cannot be read, and with the name of the image file.

    Raises
    ------
    UserError
        If the figure is unknown, if no record is suitable for the figure, or if `output` cannot be
        written.
    """
    output = None if output is None else Path(output)
    check_figure(name, output)
    chosen = choose(name, read_results(_paths(results), say=say))
    output = output or (chosen.folder if chosen.has_records else Path()) / f"{name}.png"
    numbers = draw_figure(name, chosen, output)
    say(f"written to {output}")
    return numbers


def compare(
    before: str | Path, after: str | Path, say: Say = silent, part: bool = False
) -> Changes:
    """Compare two results of the same experiments, cell by cell.

    Splits with equal hashes of data and split are compared one by one, other splits by their means.
    The page "Compare" states the rules.

    Parameters
    ----------
    before, after : path
        Earlier and later result: a results folder, a bundle, a reference folder such as
        ``reference/usps_rbf``, or a table as CSV, with ``splits.csv`` beside it if the splits are
        known. If both have one experiment, its names may differ.
    say : callable, optional
        Called with a line for each folder that cannot be read.
    part : bool, default=False
        Whether only the experiments, cells and splits of `after` are compared, as after a run with
        the option ``--sample`` or ``--only``.

    Returns
    -------
    Changes
        The compared cells and the differences, as data frames, and the exit code of the command.

    Raises
    ------
    UserError
        If a path is not a result.
    """
    old, new = (_read_for_comparison(Path(path), say) for path in (before, after))
    if len(old) == len(new) == 1:
        return compare_results(old[0], new[0], part)
    later = {item.name: item for item in new}
    common = [item for item in old if item.name in later]
    found = [compare_results(item, later[item.name], part) for item in common]
    if not part or not common:
        found += [absent(item) for item in old if item.name not in later]
    return joined(found)


def _read_for_comparison(path: Path, say: Say) -> list[Results]:
    """Return the experiments of a folder, or of a table as CSV."""
    if not path.is_file() or is_bundle(path):
        return [laid_out(one) if one.has_records else one for one in read_results([path], say=say)]
    whole = read_reference(path)
    cells, splits, names = whole.cells, whole.splits, whole.cells.experiment.unique()
    return [
        replace(
            whole,
            folder=whole.folder / name if len(names) > 1 else whole.folder,
            stored=cells[cells.experiment == name],
            splits=splits[splits.experiment == name] if len(names) > 1 else splits,
        )
        for name in names
    ]


#: Sentences about differences and warnings.
SENTENCES: dict[Subject, str] = {
    "data": "other data: {after_text}; before: {before_text}",
    "missing experiment": "missing",
    "missing cell": "missing",
    "missing value": "missing, before {before:g}",
    "missing splits": "{after:.0f} splits, before {before:.0f}",
    "more splits": "{after:.0f} splits, before {before:.0f}",
    "parameters": "{count} of {total} selected parameters differ, first in repeat {repeat} "
    "fold {fold}: {after_text}, before {before_text}",
    "splits": "{count} of {total} splits differ, first repeat {repeat} fold {fold}: "
    "{after:.3g}, before {before:.3g}",
    "status of splits": "{count} of {total} splits differ, first repeat {repeat} fold {fold}: "
    "{after_text}, before {before_text}",
    "status": "status {after_text}, before {before_text}",
    "mean": "{after:g}, before {before:g}; {allowed:.2g} may be chance or rounding",
    "mean over rows": "{after:g}, before {before:g}; standard error of the difference {se:.2g}",
    "sum over cells": "{after:+.3g} in the sum of {count} cells; {allowed:.2g} may be chance",
    "sum over cells by rows": "{after:+.3g} in the sum of {count} cells; {allowed:.2g} may be "
    "chance, by the predictions per row",
    "certificate": "{after:.1e}, before {before:.1e}",
    "band": "left its band, {after:g}, before {before:g}",
    "seconds": "{after:.3g} s, before {before:.3g} s",
}


def comparison_text(changes: Changes) -> str:
    """Return a comparison as text, with one line per difference or warning."""
    import pandas as pd

    compared, skipped = changes.compared, changes.skipped
    verdict = {0: "agrees", 1: "differs"}.get(changes.exit_code, "nothing compared")
    ways = [
        f"{(compared.way == way).sum()} {way}"
        for way in ("split by split", "by values", "by means")
    ]
    lines = [
        f"{verdict}: {len(compared)} accuracies and error counts compared ({', '.join(ways)}), "
        f"{len(skipped)} not compared, {int(compared.left_band.sum())} left their bands"
    ]
    for (name, why), rows in skipped.groupby(["dataset", "way"]):
        lines.append(f"not compared: {len(rows)} of {name}, {why}")
    for frame, start in ((changes.differences, ""), (changes.warnings, "warning: ")):
        for entries in frame.to_dict("records"):
            row = {str(column): value for column, value in entries.items()}
            place = (row[n] for n in ("experiment", "dataset", "kernel", "degree", "size"))
            name = " ".join(
                str(v) for v in (*place, row["machine"], row["metric"]) if v is not pd.NA and v
            )
            lines.append(f"{start}{name}: {SENTENCES[row['subject']].format(**row)}")
    return "\n".join(lines)


def report(
    results: Folders, output: str | Path = "report", mix: bool = False, say: Say = silent
) -> Path:
    """Write a static web site about results folders, and return the path of its overview page.

    Parameters
    ----------
    results : path or iterable of path
        Results folders of experiments, folders that contain results folders, or folders of
        reference tables.
    output : path
        Folder of the report: a new folder, an empty folder, or the folder of an earlier report.
    mix : bool
        Whether one table may contain records of different settings.
    say : callable, optional
        Called with a line for each folder that cannot be read.

    Raises
    ------
    UserError
        If no folder can be read, or if `output` contains other files or cannot be written to.
    """
    from mmbench.tables.report import write_report

    return write_report(_side_by_side(results, mix, say), Path(output), say)


def export(
    results: Folders,
    fmt: str | None = None,
    output: str | Path | None = None,
    predictions: bool = False,
    say: Say = silent,
    bundle: str | Path | None = None,
    openml: bool = False,
    store: str | Path = "datasets",
    publish: bool = False,
) -> str:
    """Write the records of results folders to a file, or return them as CSV text.

    Since a reference table has no records, the rows of its file ``splits.csv.gz`` are written.

    Parameters
    ----------
    results : path or iterable of path
        Results folders of experiments, or folders that contain results folders.
    fmt : {"csv", "parquet"}, optional
        Format of the file. The suffix of `output` determines the default format. Without `output`,
        the default is CSV.
    output : path, optional
        File to write. A CSV file is compressed if its name ends in ``.csv.gz``. Without `output`,
        the records are returned as text. In an existing folder, a folder per experiment is
        written with all frames, facts and printed tables, which every command reads like the
        results themselves.
    predictions : bool
        Whether to write one row per test row instead of one row per split.
    say : callable, optional
        Called with a line for each folder that cannot be read, and for damaged records.
    bundle : path, optional
        Zip file to write in place of `output`, with everything that other people need to read,
        check and repeat the experiments.
    openml : bool
        Whether to write the results of OpenML tasks into the folder `output`, as runs that
        openml-python reads.
    store : path
        Folder of data files, which contains the splits of OpenML tasks.
    publish : bool
        Whether to upload the runs of `openml` to OpenML, by the package openml and with the key of
        its configuration.

    Raises
    ------
    UserError
        If no folder contains records, or if the file cannot be written.
    """
    if publish and not openml:
        raise UserError("--publish uploads runs of OpenML: give --openml and --output FOLDER, too")
    if bundle is not None:
        if output is not None or fmt is not None or predictions:
            raise UserError("--bundle takes no --output, --format or --predictions")
        if openml:
            raise UserError("give only one of --bundle and --openml")
        return write_bundle(read_results(_paths(results), say=say), Path(bundle))
    output = None if output is None else Path(output)
    if openml:
        from mmbench.commands.openml_runs import publish_runs, publisher, write_runs

        if output is None or fmt is not None or predictions:
            raise UserError("--openml needs --output FOLDER, without --format and --predictions")
        if publish:
            publisher()
        folders = write_runs(read_results(_paths(results), say=say), output, Places(Path(store)))
        n = f"{len(folders)} run{'s' if len(folders) > 1 else ''}"
        written = f"{n}: written to {output}"
        return "\n".join([written, *publish_runs(folders)]) if publish else written
    if output is not None and output.is_dir():
        return write_folders(read_results(_paths(results), say=say), output)
    fmt = _format(output, fmt, EXPORT_FORMATS)
    if fmt == "parquet" and output is None:
        raise UserError("the format parquet needs --output FILE")
    rows = load(*_paths(results), predictions=predictions, say=say)
    if output is None:
        return csv_text(rows)
    if fmt == "parquet":
        # the error message of pandas would not name the extra of mmbench that must be installed
        with extra("parquet", "a Parquet file"):
            import pyarrow  # noqa: F401
        write_output(output, rows.to_parquet(index=False))
    else:
        text = csv_text(rows).encode()
        content = gzip.compress(text, mtime=0) if output.suffix.lower() == ".gz" else text
        write_output(output, content)
    return f"{len(rows)} rows written to {output}"


def clean(results: Folders, remove: bool = False) -> list[str]:
    """Count or remove the record files that the current settings of an experiment do not use.

    Returns one line of text per experiment.

    Parameters
    ----------
    results : path or iterable of path
        Results folders of experiments, or folders that contain results folders.
    remove : bool
        Whether to remove the files. If false, the files are only counted.

    Raises
    ------
    UserError
        If a path is not a results folder, or if a run is using one of the folders.
    """
    folders, lines = [folder for path in _paths(results) for folder in folders_in(path)], []
    for store in [RecordStore(folder) for folder in folders if (folder / CONFIG).is_file()]:
        with store.locked():
            paths = store.unused()
            megabytes = sum(path.lstat().st_size for path in paths or ()) / 1e6
            for one in (paths or ()) if remove else ():
                shutil.rmtree(one) if one.is_dir() and not one.is_symlink() else one.unlink()
        verb = "removed" if remove else "would be removed"
        lines.append(
            f"{store.folder}: no intact plan; run the experiment again first"
            if paths is None
            else f"{store.folder}: {len(paths)} files ({megabytes:.1f} MB) {verb}"
        )
    return lines


def _side_by_side(
    results: Folders, mix: bool, say: Say, include_failed: bool = False
) -> list[Results]:
    """Return the results in some folders.

    Experiments named by their own folders are set side by side (see `beside`); experiments inside a
    folder, such as ``results``, remain apart.
    """
    paths = _paths(results)
    found = read_results(paths, mix, say, include_failed)
    inside = (list(folders_in(path)) for path in paths)
    return beside(found, {own[0].resolve() for own in inside if len(own) == 1})


def _paths(results: Folders) -> list[Path]:
    return [Path(path) for path in ([results] if isinstance(results, str | Path) else results)]


def _format(output: Path | None, fmt: str | None, suffixes: Mapping[str, str]) -> str:
    """Return `fmt` if `fmt` is not None, else the format for the suffix of `output`.

    Without `fmt` and without a suffix, the first format in `suffixes` is returned.
    """
    name = output.name.lower() if output else ""
    suffix = next(filter(name.endswith, suffixes), Path(name).suffix)
    if fmt is None and suffix not in ("", *suffixes):
        raise UserError(f"{output}: the name must end in {', '.join(suffixes)}; or give --format")
    fmt = fmt or suffixes.get(suffix, next(iter(suffixes.values())))
    check_known(fmt, set(suffixes.values()), "unknown format")
    return fmt
