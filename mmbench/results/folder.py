"""Read the experiments or the references in a results folder.

Reading never imports or calls what a file names. Links are not followed, and only regular files of
a bounded size are read.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from mmbench.errors import UserError, converted
from mmbench.jobs.disk import TEXT_BYTES, read_regular
from mmbench.jobs.identity import identity
from mmbench.jobs.job import Job
from mmbench.jobs.planned import Plan, PlannedCell, grouped, key_of
from mmbench.jobs.record import Record, plain
from mmbench.jobs.seal import BadRecord
from mmbench.jobs.store import CONFIG, PLAN, RecordStore
from mmbench.results.cells import finished, marked, rows_of
from mmbench.results.columns import FRAMES, json_names, names, typed
from mmbench.results.frames import Results
from mmbench.results.pairwise import pair_frame
from mmbench.results.splits import split_row
from mmbench.results.unpack import is_bundle, results_folder, unpacked

if TYPE_CHECKING:
    import pandas as pd

#: Files of a reference folder. The printed tables are output only.
CSV, SPLITS, FACTS = "table.csv", "splits.csv.gz", "facts.json"
ROWS, PAIRS = "rows.csv.gz", "pairs.csv.gz"
#: Further files of an experiment in a bundle: its configuration, and its published values.
SETTINGS, PUBLISHED = "config.yaml", "published.csv"
#: Files that are unpacked from a bundle.
BUNDLED = (CSV, SPLITS, FACTS, ROWS, PAIRS, SETTINGS)
#: Significant digits of the numbers in the certificates of a reference folder, if not six. Tables
#: print two; objectives are compared up to a relative difference of 1e-6.
KEPT_DIGITS = {"objective": 9, "max_violation": 4, "seconds": 4}
#: Name of the folder that contains the reference folders.
REFERENCE = "reference"
#: Exceptions that can be raised when a damaged file is read.
DAMAGED = (ValueError, OSError, EOFError, zlib.error, BadRecord, TypeError, KeyError)

Item = TypeVar("Item")
Made = TypeVar("Made")


# -- experiments -----------------------------------------------------------------------------------


def read_experiment(folder: Path, mix: bool = False) -> Results:
    """Return the experiment whose records are stored in a folder.

    If the plan lists no jobs, only the latest record of each cell and split is used. If `mix` is
    true, records that do not belong to the plan are used too. Raises UserError if the folder
    contains no intact record.
    """
    store = RecordStore(folder)
    records, damaged = store.records()
    if not records:
        raise UserError(
            f"{folder}: no intact record; the first of {len(damaged)} damaged ones: {damaged[0]}"
            if damaged
            else f"{folder}: no records yet; run the experiment first"
        )
    remarks = [f"{damage}; the next run replaces it." for damage in store.damage()]
    plan, order = None, list[str]()
    with suppress(BadRecord):
        plan = store.plan()
    if plan is None:
        plan, order = _plan_of_text(folder)
        remarks.append(f"No {PLAN}: table cells without records are not shown.")
    planned = {cell.key for cell in plan.cells}
    jobs = plan.jobs
    known = [r for r in records if not planned or key_of(r.job) in planned]
    current = [r for r in records if r.key in jobs] if jobs else _latest(known)
    left_out = len(records) - len(current)
    if mix and left_out:
        remarks.append("Records of different settings are mixed.")
        current = records
    elif left_out:
        remarks.append(f"Records of other settings or earlier versions left out: {left_out}.")
    if damaged:
        remarks.append(f"Damaged records left out: {len(damaged)}, such as {damaged[0]}.")
    if mix or not jobs:
        plan = plan.filled(record.job for record in current)
    if order:
        plan = replace(plan, cells=_ordered(plan.cells, order))
    return of_records(folder, plan, current, tuple(remarks))


def of_records(
    folder: Path, plan: Plan, records: Sequence[Record], remarks: tuple[str, ...] = ()
) -> Results:
    """Return the results of some records."""
    import pandas as pd

    order = {key: k for k, key in enumerate(key for cell in plan.cells for key in cell.jobs)}
    records = sorted(records, key=lambda record: order.get(record.key, len(order)))
    rows = [split_row(folder.name, plan, record) for record in records]
    splits = typed("splits", pd.DataFrame(rows, dtype=object))
    foreign = frozenset(r.job.column for r in records if not states_kernel(r.job))
    facts = facts_of(plan, splits, records, foreign)
    found = {record.key: record for record in records}
    return Results(folder, plan, splits, facts, remarks, found, foreign=foreign)


def states_kernel(job: Job) -> bool:
    """Return whether the kernel of a job's place is the kernel of its machine."""
    return job.has_kernel or dict(job.params).get("kernel") == job.kernel


def _ordered(cells: Sequence[PlannedCell], machines: Sequence[str]) -> tuple[PlannedCell, ...]:
    """Return cells by data set and kernel, training size, and machine in the given order."""
    places = [cell.key._replace(machine="", size=None) for cell in cells]
    rank = {name: k for k, name in enumerate(machines)}

    def at(cell: PlannedCell) -> tuple[int, int, int]:
        place = cell.key._replace(machine="", size=None)
        return places.index(place), cell.key.size or 0, rank.get(cell.key.machine, len(rank))

    return tuple(sorted(cells, key=at))


def _plan_of_text(folder: Path) -> tuple[Plan, list[str]]:
    """Return a plan without cells, with the layouts and the labels of the machines that the text of
    the configuration states, and the machines in their order.
    """
    content: Any = {}
    with suppress(BadRecord, OSError, ValueError, yaml.YAMLError, RecursionError):
        content = yaml.safe_load(read_regular(folder / CONFIG, 2**20).decode())
    content = content if isinstance(content, dict) else {}
    layout, machines = content.get("layout"), content.get("machines")
    entries = machines if isinstance(machines, dict) else {}
    labels = {
        str(name): str(entry.get("label", name))
        for name, entry in entries.items()
        if isinstance(entry, dict) and {"label", "machine", "estimator"} & entry.keys()
    }
    listed = layout if isinstance(layout, list) else [layout]
    first, *more = [name for name in listed if isinstance(name, str)] or [Plan.layout]
    plan = Plan(folder.name, first, labels=labels, more_layouts=tuple(more))
    return plan, [*map(str, entries)]


def _latest(records: list[Record]) -> list[Record]:
    """For each cell, return the records with the latest machine version and the latest settings,
    one record per split.

    If a record is outdated, the records that use its selected parameters are outdated, too. A
    record is not outdated by a record of the same cell that uses its parameters.
    """
    cells = {record.key: key_of(record.job) for record in records}
    inherited = {key for record in records for key in record.job.parents}

    def order(record: Record) -> tuple[int, str, bool]:
        # a record and its parent may have the same time, which is in whole seconds
        return record.job.machine_version, record.finished, record.key not in inherited

    known = sorted(records, key=order)
    while True:
        newest = {cells[record.key]: record.job.cell_digest for record in known}
        chosen = {(cells[record.key], record.at): record for record in known}
        latest = [r for (cell, _), r in chosen.items() if r.job.cell_digest == newest[cell]]
        current = {record.key for record in latest}
        replaced = {k for r in latest for k in r.job.parents if cells.get(k) == cells[r.key]}
        old = cells.keys() - current - replaced
        if not any(old & {*record.job.parents} for record in known):
            return [record for record in records if record.key in current]
        known = [record for record in known if not old & {*record.job.parents}]


# -- facts -----------------------------------------------------------------------------------------


def facts_of(
    plan: Plan, splits: pd.DataFrame, records: Iterable[Record], foreign: frozenset[str]
) -> dict[str, Any]:
    """Return the facts about a run, or about some of its splits. `records` may be empty."""
    rows = rows_of(splits)
    done = finished(rows)
    ran = grouped((row.dataset, row.machine) for row in rows)
    warned = grouped(((r.dataset, text), r.machine) for r in rows for text in r.deviations or ())
    texts: dict[str, list[str]] = {}
    for (name, text), machines in warned.items():  # warnings of some machines name them
        own = [plan.label(m) for m in dict.fromkeys(machines)] if {*machines} < {*ran[name]} else []
        texts.setdefault(name, []).append(": ".join(filter(None, [", ".join(own), text])))
    run = grouped(((r.mmbench, r.python, r.computer), r.pairs_at_a_time) for r in done)
    code: dict[tuple[Any, str], dict[str, None]] = {}
    for row in done:
        if row.version is not None:
            name = plan.label(row.machine if ":" in row.estimator else row.estimator)
            name += f" ({row.kernel})" * (row.machine not in foreign)
            code.setdefault((row.version, row.fingerprint), {})[name] = None
    known = [r for r in records if r.done and {"version", "fingerprint"} <= r.code.keys()]
    return {
        "sizes": _sizes(rows),
        "deviations": texts,
        "computers": [[*names, sorted(set(pairs))] for names, pairs in run.items()],
        "code": [[version, text or "", [*machines]] for (version, text), machines in code.items()],
        "records": len(done),
        "with_code": len(known),
        "by_other_code": sum(len(own) * has_other_code(own[0]) for own in _by_code(known)),
    }


def _sizes(rows: Iterable[Any]) -> dict[str, dict[str, list[int]]]:
    """For each data set, return the smallest and largest numbers of training rows, test rows,
    features (before preprocessing) and classes.
    """
    from mmbench.datasets.card import load_card
    from mmbench.datasets.card_files import card_names

    found: dict[str, dict[str, list[int]]] = {}
    for name, own in grouped((row.dataset, row) for row in rows).items():
        sizes = found[name] = {}
        for part in ("n_train", "n_test", "n_features", "n_classes"):
            if counts := {int(n) for row in own if (n := getattr(row, part))}:
                # The record of a classifier from another package names only one pair of classes,
                # even for data sets with more classes.
                ends = {max(counts) if part == "n_classes" else min(counts), max(counts)}
                sizes[part] = sorted(ends)
    for name in found.keys() & card_names():
        shape = load_card(name).expect.shape
        found[name] |= {"n_features": [shape[1]], "n_rows": [shape[0]]}
    return found


def _by_code(records: Iterable[Record]) -> Iterable[list[Record]]:
    """Return records in groups with the same machine, preprocessing steps and code."""
    return grouped(
        ((r.job.machine, tuple(name for name, _ in r.job.dataset.preprocess), *r.code.values()), r)
        for r in records
    ).values()


def has_other_code(record: Record) -> bool:
    """Return whether the code of machine or preprocessing has changed since a record was made."""
    with suppress(UserError):  # raised if the machine no longer exists
        today = identity(record.job)
        return any(record.code.get(part) != today.get(part) for part in ("fingerprint", "steps"))
    return True


# -- references ------------------------------------------------------------------------------------


def read_reference(path: Path, frames: Collection[str] = FRAMES) -> Results:
    """Return the results in a reference folder, or in a table as CSV (``mmbench table``).

    Beside a table, the file ``splits.csv`` or ``splits.csv.gz`` may contain its splits. The frames
    other than ``cells`` are empty unless `frames` names them. Raises UserError if a file is damaged
    or was not written by mmbench.
    """
    import pandas as pd

    table, folder = (path, path.parent) if path.is_file() else (path / CSV, path)
    by_split = folder / (SPLITS if (folder / SPLITS).exists() else "splits.csv")
    with converted(f"{folder / FACTS}: not the facts of a run of mmbench", *DAMAGED):
        facts = json.loads(read_regular(folder / FACTS)) if (folder / FACTS).exists() else {}
        plan = Plan.of(facts.pop("plan", {"name": folder.name}))
    empty: dict[str, Any] = {"sizes": {}, "deviations": {}, "computers": [], "code": []}
    facts = {**empty, "records": 0, "with_code": 0, "by_other_code": 0, **facts}
    with converted(f"{table}: not a table of mmbench", *DAMAGED):
        cells = _read_frame("cells", table, ("metric", "status", "note"))
        foreign = frozenset(cells.machine[(cells.kernel == "") & (cells.dataset != "")])
        cells = marked(_with_kernels(cells, plan))
    if not facts["deviations"]:
        texts = cells[cells.deviation != ""].groupby("dataset").deviation.first()
        facts["deviations"] = {name: [text] for name, text in texts.items()}
    splits = typed("splits", pd.DataFrame())
    if "splits" in frames and by_split.exists():
        with converted(f"{by_split}: not a split table of mmbench", *DAMAGED):
            needed = ("repeat", "fold", "seed", "split_hash", "fits", "accuracy_pct")
            splits = _with_kernels(_read_frame("splits", by_split, needed), plan)
            if splits[["repeat", "fold", "seed"]].isna().any(axis=None):
                raise ValueError("a split without repeat, fold or seed")
    more: dict[str, Any] = {}
    for frame, name, column in (("pairs", PAIRS, "machine_a"), ("rows", ROWS, "counts")):
        with converted(f"{folder / name}: not a table of {frame} of mmbench", *DAMAGED):
            if frame in frames and (folder / name).exists():
                more[f"stored_{frame}"] = _read_frame(frame, folder / name, (column,))
    return Results(folder, plan, splits, facts, stored=cells, foreign=foreign, **more)


def _read_frame(frame: str, path: Path, needed: Iterable[str]) -> pd.DataFrame:
    """Return a frame from a CSV file. Raises ValueError if a needed column is absent."""
    import pandas as pd

    text = read_regular(path)
    if path.suffix == ".gz":
        with gzip.GzipFile(fileobj=io.BytesIO(text)) as file:
            text = file.read(TEXT_BYTES + 1)
        if len(text) > TEXT_BYTES:
            raise ValueError(f"more than {TEXT_BYTES} bytes")
    table = pd.read_csv(io.BytesIO(text), dtype=str, keep_default_na=False, index_col=False)
    if lost := {"dataset", "kernel", "machine", *needed} - {
        *table,
        "machine" if frame == "pairs" else "",
    }:
        raise ValueError(f"no column {min(lost)}")
    table = typed(frame, table)
    for name in json_names(frame):
        texts = [value or "null" for value in table[name]]
        values = json.loads(f"[{','.join(texts)}]")  # one call takes a fifth of the time of many
        if len(values) != len(texts):
            raise ValueError(f"{name}: not one value per row")
        table[name] = pd.Series(values, table.index, object)
    return table


def _with_kernels(table: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """Return a frame in which classifiers of other packages have the kernel of their place: the
    kernel in the plan, or else the first kernel of the data set.
    """
    planned = {cell.key.machine: cell.key.kernel for cell in plan.cells}
    given = table[table.kernel != ""].groupby("dataset").kernel.first()
    filled = [
        kernel or ("" if not dataset else planned.get(machine) or given.get(dataset, "linear"))
        for dataset, kernel, machine in zip(table.dataset, table.kernel, table.machine, strict=True)
    ]
    return table.assign(kernel=filled)


# -- writing ---------------------------------------------------------------------------------------


def as_text(frame: str, table: pd.DataFrame, foreign: Iterable[str] = ()) -> pd.DataFrame:
    """Return a frame as it is written to files: mappings and lists as JSON, and no kernel for
    classifiers of other packages.
    """
    table = table.copy()
    for name in json_names(frame):
        table[name] = ["" if v is None or v == "" else _json(v) for v in table[name]]
    if "machine" in table:
        table["kernel"] = table.kernel.mask(table.machine.isin(list(foreign)), "")
    return table


def _json(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False)


def cells_frame(results: Results) -> pd.DataFrame:
    """Return the frame ``cells`` as it is written; without training sizes, it has no ``size``."""
    cells = as_text("cells", results.cells[names("cells")], results.foreign)
    return cells if cells["size"].notna().any() else cells.drop(columns="size")


def frames_of(results: Results) -> dict[str, pd.DataFrame]:
    """Return the frames of a reference folder by file name, as they are written."""
    import pandas as pd

    fits = [
        row.certificates and [*map(_shortened, results.fits_with_accuracy(row))]
        for row in rows_of(results.splits)
    ]
    splits = results.splits.assign(certificates=pd.Series(fits, results.splits.index, object))
    made = {CSV: cells_frame(results), SPLITS: as_text("splits", splits, results.foreign)}
    stored = {ROWS: results.stored_rows, PAIRS: results.stored_pairs}
    if results.has_records:
        stored = {ROWS: _rows_frame(results), PAIRS: pair_frame(results)}
    known = {name: frame for name, frame in stored.items() if frame is not None and len(frame)}
    kinds = {ROWS: "rows", PAIRS: "pairs"}
    return made | {name: as_text(kinds[name], frame) for name, frame in known.items()}


def _rows_frame(results: Results) -> pd.DataFrame:
    import pandas as pd

    rows = [
        {"experiment": results.name, **key._asdict(), "counts": counts.tolist()}
        for key, counts in results.row_counts.items()
    ]
    return typed("rows", pd.DataFrame(rows))


def _shortened(fit: Mapping[str, Any]) -> dict[str, Any]:
    """Return a certificate with few digits and without its bound, which follows from the objective
    and the gap. Most of the bytes of a reference folder are digits of certificates.
    """

    def short(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {own: short(own, part) for own, part in value.items()}
        return float(f"{value:.{KEPT_DIGITS.get(name, 6)}g}") if isinstance(value, float) else value

    return {name: short(name, value) for name, value in fit.items() if name != "bound"}


def facts_text(results: Results) -> str:
    """Return the text of the file ``facts.json`` of a reference folder."""
    plan = {**asdict(results.plan), "config": "", "config_sha256": ""}
    plan["cells"] = [{**cell, "jobs": [], "key": list(cell["key"])} for cell in plan["cells"]]
    return json.dumps(plain({"plan": plan, **results.facts}), indent=1, ensure_ascii=False) + "\n"


# -- folders ---------------------------------------------------------------------------------------


def read_results(
    paths: Iterable[Path],
    mix: bool = False,
    say: Callable[[str], object] = lambda line: None,
    include_failed: bool = False,
) -> list[Results]:
    """Return the experiments and references in several folders.

    Each path is the folder of one experiment, a results folder that contains folders of
    experiments, or a bundle. The argument `mix` is passed to `read_experiment`. The function `say`
    is called with a message for each folder that cannot be read. Raises UserError if a path is not
    a results folder, or if none of the folders can be read.
    """

    def read(folder: Path) -> Results:
        if (folder / CONFIG).is_file():
            return replace(read_experiment(folder, mix), include_failed=include_failed)
        return read_reference(folder)

    # a folder that is given twice, such as results and results/usps_rbf, is read once
    folders = {folder.resolve(): folder for path in paths for folder in folders_in(path)}
    if not folders:
        raise UserError("no results folder is given")
    return each(read, folders.values(), say)


def each(
    make: Callable[[Item], Made], items: Iterable[Item], say: Callable[[str], object]
) -> list[Made]:
    """Apply the function `make` to each item, and return the results.

    Items for which `make` raises an error are left out. The function `say` is called with each
    error message. Raises UserError if `make` fails for all items.
    """
    made: list[Made] = []
    faults: list[str] = []
    for item in items:
        try:
            made.append(make(item))
        except (UserError, OSError) as error:
            faults.append(" ".join(str(error).split()))
    if not made:
        raise UserError(f"{faults[0]}{f'; {len(faults) - 1} more failed' if faults[1:] else ''}")
    for fault in faults:
        say(fault)
    return made


def folders_in(path: Path) -> list[Path]:
    """Return the folders of the experiments in a results folder.

    If `path` is the folder of one experiment, only this folder is returned. If a results folder
    contains no experiments, the reference folders in it are returned. If `path` begins with
    "reference" and does not exist, the reference folders in the package are returned. A bundle is
    unpacked first.

    Raises UserError if `path` is not a folder, or contains neither experiments nor references.
    """
    path = unpacked(path, BUNDLED) if is_bundle(path) else results_folder(path)
    for plan in (path / PLAN, *path.glob(f"*/{PLAN}")):
        if plan.is_file() and not (plan.parent / CONFIG).is_file():
            with suppress(UserError):  # `RecordStore` restores the configuration from the plan
                RecordStore(plan.parent)
    if (path / CONFIG).is_file() or (path / CSV).is_file():
        return [path]
    for mark in (f"*/{CONFIG}", f"*/{CSV}", f"{REFERENCE}/*/{CSV}"):
        if found := sorted(f.parent for f in path.glob(mark) if f.parent.name != REFERENCE):
            return found
    raise UserError(f"{path}: not a results folder; no {CONFIG} or {CSV} in it or its folders")
