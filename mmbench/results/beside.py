"""Results set side by side: machines of one experiment as columns of another experiment.

A result belongs to a place of the host if its data set has the same content hash, and each of its
splits the hash of a split of the host.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmbench.jobs.planned import Key, PlannedCell, grouped
from mmbench.results.cells import all_fits, as_cells, marked
from mmbench.results.columns import typed
from mmbench.results.folder import facts_of
from mmbench.results.frames import Results

if TYPE_CHECKING:
    import pandas as pd

#: Repeat, fold and seed of a split in the host, by the hash of the split.
Splits = Mapping[str, tuple[int, int, int]]


def beside(results: Sequence[Results], named: AbstractSet[Path]) -> list[Results]:
    """Return the results, with each guest as columns of the first host that has its splits.

    An experiment is a guest of an earlier experiment if the two have different names and some
    places in common, and if both folders are in `named`. A guest of which some cells have no place
    in the host is also returned as it is, like other experiments, so that no cell is lost.
    """
    hosts: list[Results] = []
    for guest in results:
        for k, host in enumerate(hosts):
            able = {guest.folder.resolve(), host.folder.resolve()} <= named
            if able and guest.name != host.name and (joined := _joined(host, guest)) is not None:
                hosts[k], whole = joined
                hosts += [] if whole else [guest]
                break
        else:
            hosts.append(guest)
    return hosts


#: Remark on a narrowed reference folder without the certificates of single fits.
PART = "Medians and counts of gaps are stored for all data sets together, and left out here."


def narrowed(results: Results, wanted: Mapping[str, Collection[str]]) -> Results:
    """Return results with only some data sets and machines, and the facts about these.

    The keys of `wanted` are "dataset" and "machine"; a missing key stands for all.
    """
    import pandas as pd

    if not wanted:
        return results

    def kept(frame: pd.DataFrame) -> pd.DataFrame:
        shown = [frame[part].isin([*names, ""]) for part, names in wanted.items()]
        return frame[np.logical_and.reduce(shown)]

    cells = [c for c in results.plan.cells if all(getattr(c.key, p) in wanted[p] for p in wanted)]
    made = replace(
        results, plan=replace(results.plan, cells=tuple(cells)), splits=kept(results.splits)
    )
    if results.stored is None:
        return replace(made, facts=_facts_of_part(made))
    stored, remarks = kept(results.stored), results.remarks
    if "dataset" in wanted:  # the stored totals are over all data sets
        more = as_cells(made.totals())
        lost = {*stored.metric[stored.dataset == ""]} - {*more.metric}
        stored = pd.concat([stored[stored.dataset != ""], more], ignore_index=True)
        remarks = (*remarks, *[PART][: bool(lost)])
    return replace(made, facts=_facts_of_part(made), stored=stored, remarks=remarks)


def _facts_of_part(results: Results) -> dict[str, Any]:
    """Return the facts about the splits of narrowed results. Facts that are not stored per split
    describe the whole run.
    """
    splits = results.splits[~results.splits.experiment.isin([g.name for g in results.guests])]
    records = [r for key in splits.record if (r := results.records.get(key))]
    found, whole = facts_of(results.plan, splits, records, results.foreign), results.facts
    if not results.has_records:
        found["with_code"] = int(splits.version.notna().sum())
        every = {0: 0, whole["with_code"]: found["with_code"]}
        found["by_other_code"] = every.get(whole["by_other_code"])
    if not any(computer for *_, computer, _ in found["computers"]):
        found["computers"] = whole["computers"]
    return {**whole, **found, "sizes": whole["sizes"], "deviations": whole["deviations"]}


def _joined(host: Results, guest: Results) -> tuple[Results, bool] | None:
    """Return the host with the machines of the guest, and whether each of the guest's cells has a
    place there; None without a place in common.
    """
    own = {column: _column(host, guest, column) for column in guest.by_column}
    places = grouped(
        (key._replace(machine="", kernel="", degree=None), key) for key in host.by_cell
    )
    moved: dict[Key, tuple[Key, Splits]] = {}  # by the key in the host: key and splits there
    differs: list[str] = []
    for key in guest.by_cell:
        found = places.get(key._replace(machine="", kernel="", degree=None), ())
        for place in dict.fromkeys(at._replace(machine="") for at in found):
            if key.machine in guest.foreign or place[1:3] == key[1:3]:
                splits, fault = _common(host, place, guest, key)
                if fault:
                    differs.append(f"{own[key.machine][1]} on {key.dataset}: {fault}")
                else:
                    moved[place._replace(machine=own[key.machine][0])] = key, splits
    if not moved:
        return None
    labels = {**host.plan.labels, **dict(own.values())}
    cells = [
        PlannedCell(at, max(c.n_splits for c in host.plan.cells if c.key.dataset == at.dataset))
        for at in moved
    ]
    remark = f"From {guest.folder}: {', '.join(dict.fromkeys(label for _, label in own.values()))}."
    lost = f" Left out, since data or splits differ: {'; '.join(differs)}." if differs else ""
    joined = replace(
        host,
        plan=replace(host.plan, cells=(*_planned(host), *cells), labels=labels),
        splits=_splits(host, guest, moved),
        remarks=(*host.remarks, remark + lost),
        stored=None if host.stored is None else _cells(host.stored, guest, moved, own),
        guests=(*host.guests, guest),
        guest_rows={
            at: guest.row_counts[key] for at, (key, _) in moved.items() if key in guest.row_counts
        },
        foreign=host.foreign | {own[name][0] for name in guest.foreign if name in own},
    )
    return joined, len({key for key, _ in moved.values()}) == len(guest.by_cell)


def _planned(host: Results) -> Iterable[PlannedCell]:
    known = {cell.key for cell in host.plan.cells}
    more = (PlannedCell(key, len(rows)) for key, rows in host.by_cell.items() if key not in known)
    return (*host.plan.cells, *more)


def _column(host: Results, guest: Results, machine: str) -> tuple[str, str]:
    """Return the name and the label of a machine of the guest in the table of the host."""
    label = guest.label(machine)
    taken = {host.label(name) for name in host.by_column}
    name = machine if machine not in host.by_column else f"{machine} ({guest.name})"
    return name, label if label not in taken else f"{label} ({guest.name})"


def _common(host: Results, place: Key, guest: Results, key: Key) -> tuple[Splits, str]:
    """Return the splits of the host that the guest's cell has, and how the two differ, if so."""
    rows = [r for k, own in host.by_cell.items() if k._replace(machine="") == place for r in own]
    known = {row.split_hash: (row.repeat, row.fold, row.seed) for row in rows}
    own = guest.by_cell[key]
    if {row.data_hash for row in own} != {row.data_hash for row in rows}:
        return {}, "other data"
    unknown = sum(row.split_hash not in known for row in own)
    return known, f"{unknown} of {len(own)} splits are others" if unknown else ""


def _splits(host: Results, guest: Results, moved: Mapping[Key, tuple[Key, Splits]]) -> pd.DataFrame:
    import pandas as pd

    parts = [host.splits]
    for target, (key, known) in moved.items():
        own = guest.splits.loc[[row.Index for row in guest.by_cell[key]]]
        at = pd.DataFrame([known[h] for h in own.split_hash], own.index, ["repeat", "fold", "seed"])
        parts.append(typed("splits", own.assign(**target._asdict(), **at)))
    return pd.concat(parts, ignore_index=True)


def _cells(
    stored: pd.DataFrame,
    guest: Results,
    moved: Mapping[Key, tuple[Key, Splits]],
    own: Mapping[str, tuple[str, str]],
) -> pd.DataFrame:
    """Return the stored cells of both, and the totals of the guest's machines."""
    import pandas as pd

    pairs = [(target, key) for target, (key, _) in moved.items()]
    pairs += [(all_fits(new), all_fits(old)) for old, (new, _) in own.items()]
    parts = [stored]
    for target, key in pairs:
        rows = guest.cells[guest.cells.key == key].drop(columns="key")
        parts.append(typed("cells", rows.assign(**target._asdict(), experiment=guest.name)))
    return marked(pd.concat(parts, ignore_index=True))
