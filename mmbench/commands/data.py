"""The commands ``mmbench data list``, ``info``, ``fetch`` and ``verify``."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mmbench.datasets.card import Card, load_card
from mmbench.datasets.card_files import card_names
from mmbench.datasets.dataset import DatasetRef
from mmbench.datasets.fetch import Places, Search, SourceFiles, copy_to_store, find
from mmbench.datasets.partitions import split_rules
from mmbench.errors import UserError


class Outcome(NamedTuple):
    """Outcome of the download or the verification of one data set, with a message for the user."""

    name: str
    ok: bool
    message: str


def summaries(store: str | Path, mirror: str | Path | None = None) -> list[tuple]:
    """Return a row of headings, then one row per data set: name, sizes, split rules and location.

    The location is ``store`` or ``mirror``, ``built in`` for data that need no file, ``damaged``,
    or ``-`` without files on this computer. No file is downloaded.
    """
    places = Places(Path(store), mirror, allow_network=False)
    rows: list[tuple] = [("name", "rows", "columns", "classes", "splits", "where")]
    for card in map(load_card, card_names()):
        splits = ", ".join(split_rules(DatasetRef(card.name)))
        sizes = (*card.expect.shape, card.expect.n_classes)
        rows.append((card.name, *sizes, splits, _where(card, places)))
    return rows


def licences() -> list[tuple]:
    """Return a row of headings, then one row per data set: name and licence."""
    return [("name", "licence"), *((name, load_card(name).licence) for name in card_names())]


def _where(card: Card, places: Places) -> str:
    search = Search(card, places)
    if (found := search.local()) is None:
        return "damaged" if search.tried else "-"
    if found.source.in_memory:
        return "built in"
    return "store" if found.paths[0].is_relative_to(places.store) else "mirror"


def info(name: str, store: str | Path, mirror: str | Path | None = None) -> str:
    """Return a text with the contents of a data set card and the location of the data files."""
    card, places = load_card(name), Places(Path(store), mirror)
    expect, official, plan = card.expect, card.expect.official, card.expect.predefined
    here = "no (or damaged; see 'mmbench data verify')"
    if found := Search(card, places).local():
        n, d = found.card.expected(found.source).shape
        here = f"{found.source.label}, {n} x {d}, {_where(card, places)}{_notes(found)}"
    classes = [f"{label} {count}" for label, count in list(expect.classes.items())[:30]]
    classes += ["..."] * (0 < len(classes) < expect.n_classes)
    sizes = f" of {plan.train} train, {plan.test} test" if plan and plan.train else ""
    facts = {
        "rows x columns": f"{expect.shape[0]} x {expect.shape[1]}",
        "classes": str(expect.n_classes) + (f" ({', '.join(classes)})" if classes else ""),
        "splits": ", ".join(split_rules(DatasetRef(name))),
        "official split": official and f"{official.train} train, {official.test} test",
        "predefined": plan and f"{plan.count} splits{sizes}",
        "treatment": card.treatment,
        "content SHA-256": expect.content or "depends on the source",
        "licence": card.licence,
        "citation": card.citation,
        "here": here,
    }
    lines = [f"{card.name}: {card.title}", ""]
    lines += [f"{key + ':':<18}{value}" for key, value in facts.items() if value]
    lines += ["", "sources, in this order:"]
    for source in card.sources:
        lines.append(f"  {source.label}")
        for file in source.files:
            lines.append(f"    {file.path}  SHA-256 {file.sha256[0]}")
            lines += [f"      {url}" for url in file.urls]
        lines += [f"    {url}" for url in source.urls]
        lines += [f"    deviation: {text}" for text in source.all_deviations]
    if card.known_deviations:
        lines += ["", "differences from the papers:"]
        lines += [f"  - {text}" for text in card.known_deviations]
    return "\n".join(lines)


def fetch(
    names: Sequence[str] | None,
    store: str | Path,
    mirror: str | Path | None = None,
    progress: bool = False,
    allow_network: bool = True,
) -> Iterator[Outcome]:
    """Download data sets into the local store, and verify the files.

    Yields the outcome of each data set before the next data set is downloaded. If the download of a
    data set fails, the remaining data sets are downloaded nevertheless.

    Parameters
    ----------
    names : sequence of str or None
        Names of data sets. If None, all data sets with a card are downloaded.
    store, mirror : path
        `store` is the folder of downloaded data files. `mirror` is a folder or URL that is searched
        after the store.
    progress : bool
        Whether to show one progress bar for all data sets, and one progress bar per download.
    allow_network : bool
        Whether files may be downloaded.

    Raises
    ------
    UserError
        If a name is unknown. All names are checked before the first download.
    """
    places = Places(Path(store), mirror, allow_network, progress)

    def message(card: Card) -> str:
        found = copy_to_store(find(card, places), places)
        found.read()
        return "built in" if found.source.in_memory else f"in the store{_notes(found)}"

    return _outcomes(_cards(names, "data sets", progress), message)


def _cards(names: Sequence[str] | None, task: str, progress: bool) -> Iterable[Card]:
    """Return the data set cards with the given names, or all cards if `names` is None.

    The iteration over the returned cards shows a progress bar if `progress` is true.
    """
    from tqdm import tqdm

    cards = [load_card(name) for name in (card_names() if names is None else names)]
    return tqdm(cards, desc=task, unit="set", disable=not progress)


def _outcomes(cards: Iterable[Card], message: Callable[[Card], str]) -> Iterator[Outcome]:
    """Yield an `Outcome` for each card, with the text that `message` returns or the error that it
    raises; leave out outcomes with an empty text.
    """
    for card in cards:
        try:
            outcome = Outcome(card.name, True, message(card))
        except UserError as error:
            outcome = Outcome(card.name, False, str(error))
        if outcome.message:
            yield outcome


def _notes(found: SourceFiles) -> str:
    return "".join(f" (deviation: {text})" for text in found.source.all_deviations)


def verify(
    names: Sequence[str] | None,
    store: str | Path,
    mirror: str | Path | None = None,
    progress: bool = False,
) -> Iterator[Outcome]:
    """Compare the hashes, shapes and class counts of data files with their data set cards.

    Parameters
    ----------
    names : sequence of str or None
        Names of data sets. If None, all data sets with files on this computer are verified.
    store, mirror : path
        `store` is the folder of downloaded data files. `mirror` is a folder or URL that is searched
        after the store.
    progress : bool
        Whether to show a progress bar.

    Raises
    ------
    UserError
        If a name is unknown.
    """
    places = Places(Path(store), mirror, allow_network=False)
    absent = "" if names is None else "no files on this computer; fetch them first"

    def message(card: Card) -> str:
        search = Search(card, places)
        found = search.local()
        if search.tried or found is None:
            raise UserError("; ".join(search.tried) or absent)
        found.read(every_value=True)
        return f"agrees with its card{_notes(found)}"

    return _outcomes(_cards(names, "verify", progress), message)
