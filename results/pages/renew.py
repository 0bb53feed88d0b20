"""Renew reference folders from the records of whole runs, with their pictures.

    python -m results.pages.renew results/usps_rbf results/verdict

Prints what differs from the folders before. The pages are renewed by their own scripts, which stop
where a sentence no longer follows.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mmbench.commands.outputs import compare, comparison_text, export, figure
from mmbench.resources import REFERENCE


def renew(results: Path) -> None:
    """Write the reference folder of an experiment, and draw its pictures again."""
    folder = REFERENCE / results.resolve().name
    if folder.exists():
        print(f"{folder.name}: {comparison_text(compare(folder, results))}")
    print(export(results, output=REFERENCE))
    for picture in sorted(folder.glob("*.svg")):
        name = folder.name if picture.stem == "figure" else picture.stem
        print(figure(name, results, picture))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        renew(Path(argument))
