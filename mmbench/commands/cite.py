"""What to cite: the papers of a machine, or of all that an experiment uses, as BibTeX."""

import re
import textwrap
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from mmbench import __version__
from mmbench.errors import UserError, did_you_mean

#: An entry of the file, and the machines that its keywords name.
ENTRY = re.compile(r"^@\w+\{.*?^\}$", re.M | re.S)
KEYWORDS = re.compile(r"\n\s*keywords\s*=\s*\{([^}]*)\},")

SOFTWARE = f"""\
@software{{mmbench,
  author  = {{{{The mmbench developers}}}},
  title   = {{mmbench: max-margin classifiers and the experiments of their papers}},
  version = {{{__version__}}},
}}"""


def citation(name: str) -> str:
    """Return the BibTeX entries of a machine or an experiment, mmbench itself last.

    Data sets are cited as their cards word it, outside entries, which BibTeX takes for comments.

    Parameters
    ----------
    name : str
        Of a machine, an alias or an experiment, or a YAML file.

    Raises
    ------
    UserError
        If there is no such name; the message holds the nearest one.
    """
    from mmbench.machines import ALIASES, MACHINES, alias_of

    if name in MACHINES or name in ALIASES:
        parts = entries_of([alias_of(name).machine])
    else:
        parts = _of_experiment(name)
    return "\n\n".join([*parts, SOFTWARE])


def entries_of(machines: Iterable[str]) -> list[str]:
    """Return the entries whose keywords name one of some machines, in the order of the file."""
    wanted = set(machines)
    text = files("mmbench.machines").joinpath("citations.bib").read_text(encoding="utf-8")
    return [
        KEYWORDS.sub("", entry)
        for entry in ENTRY.findall(text)
        if wanted & set(re.split(r",\s*", KEYWORDS.findall(entry)[0]))
    ]


def _of_experiment(name: str) -> list[str]:
    from mmbench.config.files import config_files, find_config
    from mmbench.config.read import load_config
    from mmbench.machines import ALIASES, MACHINES, alias_of

    if not Path(name).exists() and not name.endswith(".yaml") and name not in config_files():
        known = (*MACHINES, *ALIASES, *config_files())
        raise UserError(f"{name!r} is no machine and no experiment{did_you_mean(name, known)}")
    config = load_config(find_config(name))
    machines = [alias_of(config.machine_of(column)).machine for column in config.machines]
    found = ["sklearn" if machine.startswith("sklearn.") else machine for machine in machines]
    unknown = [machine for machine in found if machine not in (*MACHINES, "sklearn")]
    cards = [entry.name for entry in config.datasets if entry.source is None and entry.name]
    notes = [*_data(dict.fromkeys(cards)), *(f"{path}: has its own source" for path in unknown)]
    return [*entries_of(found), *(textwrap.indent(textwrap.fill(note, 96), "% ") for note in notes)]


def _data(cards: Iterable[str]) -> list[str]:
    """Return a line for each source of data sets, with the names of the sets."""
    from mmbench.datasets import load_card

    sources: dict[str, list[str]] = {}
    for card in cards:
        sources.setdefault(load_card(card).citation, []).append(card)
    return [f"Data: {', '.join(names)}. {source}" for source, names in sources.items()]
