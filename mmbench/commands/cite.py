"""``mmbench cite``: the references of a machine, an experiment or mmbench, as BibTeX."""

import re
from collections.abc import Sequence
from importlib.resources import files
from itertools import starmap
from pathlib import Path

from mmbench import __version__
from mmbench.config.files import config_files, find_config
from mmbench.errors import UserError, did_you_mean
from mmbench.machines import ALIASES, MACHINES, alias_of

__all__ = ["cite"]

#: Pattern for a BibTeX entry in the file citations.bib.
ENTRY = re.compile(r"^@\w+\{.*?^\}$", re.M | re.S)
#: Pattern for the keywords of a BibTeX entry. A keyword is the name of a machine, or "mmbench".
KEYWORDS = re.compile(r"\n\s*keywords\s*=\s*\{([^}]*)\},")


def cite(name: str | None = None) -> str:
    """Return the BibTeX entries for a machine (given by name or alias) or an experiment.

    The last entry cites mmbench itself. If `name` is None, only the entry of mmbench is returned.
    An experiment also has entries for its data sets and for the statistical tests in its table. If
    `name` is a results folder, its records name the machines and data sets.

    Raises
    ------
    UserError
        If the name is unknown. The error message suggests known names.
    """
    parts: list[str] = []
    if name in MACHINES or name in ALIASES:
        parts = entries_of([alias_of(str(name)).machine])
    elif name is not None:
        parts = _of_experiment(name)
    return "\n\n".join([*parts, entries_of(["mmbench"])[0].replace("VERSION", __version__)])


def entries_of(machines: Sequence[str]) -> list[str]:
    """Return the BibTeX entries whose keywords include one of the machines."""
    text = files("mmbench.machines").joinpath("citations.bib").read_text(encoding="utf-8")
    return [
        KEYWORDS.sub("", entry)
        for entry in ENTRY.findall(text)
        if {*machines} & {*re.split(r",\s*", KEYWORDS.findall(entry)[0])}
    ]


def _of_experiment(name: str) -> list[str]:
    from mmbench.config.read import load_config
    from mmbench.datasets.card import load_card
    from mmbench.datasets.card_files import card_names
    from mmbench.jobs.planned import grouped
    from mmbench.results.folder import read_experiment

    if not Path(name).exists():  # a reference table cites what its configuration does
        name = name.removeprefix("reference/")
    if not Path(name).exists() and not name.endswith(".yaml") and name not in config_files():
        known = (*MACHINES, *ALIASES, *config_files())
        raise UserError(f"{name!r} is neither machine nor experiment{did_you_mean(name, known)}")
    if Path(name).is_dir() and name not in config_files():
        # the configuration of another person's folder may name any code, and is not read
        jobs = [record.job for record in read_experiment(Path(name)).records.values()]
        found = [job.machine for job in jobs]
        labels = [job.dataset.name for job in jobs if job.dataset.path is None]
    else:
        config = load_config(find_config(name))
        found = [config.machine_of(column) for column in config.machines]
        labels = [entry.label for entry in config.datasets if entry.source is None]
    machines = dict.fromkeys(alias_of(machine).machine for machine in found)
    sources = ["sklearn" if machine.startswith("sklearn.") else machine for machine in machines]
    cards = [label for label in dict.fromkeys(labels) if label in card_names()]
    sets = grouped((load_card(label).citation, label) for label in cards)
    own = [f"% {s}: has its own source" for s in sources if s not in (*MACHINES, "sklearn")]
    return [*entries_of(sources), *starmap(_data_entry, sets.items()), *entries_of(["tests"]), *own]


def _data_entry(source: str, labels: Sequence[str]) -> str:
    """Return the entry of data sets with one source, which is a note: it may be of any kind."""
    names, note = (re.sub(r"([&%#_$])", r"\\\1", text) for text in (", ".join(labels), source))
    return f"@misc{{data_{labels[0]},\n  title = {{Data: {names}}},\n  note  = {{{note}}},\n}}"
