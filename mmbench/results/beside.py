"""Results set side by side: machines of one experiment as columns of another experiment.

A result belongs to a place of the host if its data set has the same content hash, and if each of
its splits has the hash of a split of the host. Places that differ are left out, and a remark names
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmbench.jobs.planned import Key, PlannedCell, grouped
from mmbench.results.cells import as_cells, marked, rows_of
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
        whole = False
        for k, host in enumerate(hosts):
            if not {guest.folder.resolve(), host.folder.resolve()} <= named:
                continue
            if guest.name != host.name and (joined := _joined(host, guest)) is not None:
                hosts[k], whole = joined
                break
        if not whole:
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
        totals = list(made.totals())
        more = as_cells((row for _, row in totals), [key for key, _ in totals])
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
    keys: dict[Key, list[Key]] = {}
    moved: dict[Key, Splits] = {}
    differs: list[str] = []
    for key in guest.by_cell:
        foreign = key.machine in guest.foreign
        at = [
            place
            for place in dict.fromkeys(
                found._replace(machine="")
                for found in places.get(key._replace(machine="", kernel="", degree=None), ())
            )
            if foreign or (place.kernel, place.degree) == (key.kernel, key.degree)
        ]
        for place in at:
            splits, fault = _common(host, place, guest, key)
            if fault:
                differs.append(f"{own[key.machine][1]} on {key.dataset}: {fault}")
            else:
                target = place._replace(machine=own[key.machine][0])
                keys.setdefault(key, []).append(target)
                moved[target] = splits
    if not keys:
        return None
    labels = {**host.plan.labels, **dict(own.values())}
    cells = [
        PlannedCell(
            target, max(c.n_splits for c in host.plan.cells if c.key.dataset == key.dataset)
        )
        for key, targets in keys.items()
        for target in targets
    ]
    remark = f"From {guest.folder}: {', '.join(dict.fromkeys(label for _, label in own.values()))}."
    lost = f" Left out, since data or splits differ: {'; '.join(differs)}." if differs else ""
    joined = replace(
        host,
        plan=replace(host.plan, cells=(*_planned(host), *cells), labels=labels),
        splits=_splits(host, guest, keys, moved),
        remarks=(*host.remarks, remark + lost),
        stored=None if host.stored is None else _cells(host.stored, guest, keys, own),
        guests=(*host.guests, guest),
        guest_rows={
            target: guest.row_counts[key]
            for key, targets in keys.items()
            for target in targets
            if key in guest.row_counts
        },
        foreign=host.foreign | {own[name][0] for name in guest.foreign if name in own},
    )
    return joined, len(keys) == len(guest.by_cell)


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


def _splits(
    host: Results, guest: Results, keys: Mapping[Key, Sequence[Key]], moved: Mapping[Key, Splits]
) -> pd.DataFrame:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for key, targets in keys.items():
        for target in targets:
            for row in guest.by_cell[key]:
                at = dict(
                    zip(("repeat", "fold", "seed"), moved[target][row.split_hash], strict=True)
                )
                values = {name: value for name, value in row._asdict().items() if name != "Index"}
                rows.append({**values, **target._asdict(), **at})
    return pd.concat([host.splits, typed("splits", pd.DataFrame(rows))], ignore_index=True)


def _cells(
    stored: pd.DataFrame,
    guest: Results,
    keys: Mapping[Key, Sequence[Key]],
    own: Mapping[str, tuple[str, str]],
) -> pd.DataFrame:
    """Return the stored cells of both, and the totals of the guest's machines."""
    import pandas as pd

    totals = {Key("", "", None, name): [Key("", "", None, new)] for name, (new, _) in own.items()}
    rows, targets = list[dict[str, Any]](), list[Key]()
    for row in rows_of(guest.cells):
        for target in {**keys, **totals}.get(row.key, ()):
            values = {n: v for n, v in row._asdict().items() if n not in ("Index", "key")}
            rows.append({**values, **target._asdict(), "experiment": guest.name})
            targets.append(target)
    more = typed("cells", pd.DataFrame(rows)).assign(key=pd.Series(targets, dtype=object))
    return marked(pd.concat([stored, more], ignore_index=True))
