"""The figures of the papers, as vector files beside the page of their experiment."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from mmbench.errors import UserError
from mmbench.tables.figures import draw_figure, figures_of, title_of
from mmbench.tables.reference import Reference
from mmbench.tables.report.site import Site
from mmbench.tables.report.view import View

#: Drawn of any experiment with machines and data sets enough.
RANKS = "critical_difference"


@dataclass(frozen=True)
class Drawing:
    """A figure in a file; without one `words` says why it could not be drawn."""

    name: str
    title: str
    file: str
    words: str


def drawings(site: Site, view: View) -> list[Drawing]:
    """Draw the figures of an experiment; of a table of an earlier run show those beside it."""
    if isinstance(view.experiment, Reference):
        images = sorted(view.experiment.folder.glob("*.png"))
        if images:
            return [_copied(site, view, image) for image in images]
    # parts of one data set are not data sets over which ranks could be compared
    ranks = [] if any(key.size is not None for key in view.keys) else [RANKS]
    found = [_drawn(site, view, name) for name in (*figures_of(view.experiment), *ranks)]
    return [one for one in found if one.file or one.name != RANKS]


def _copied(site: Site, view: View, image: Path) -> Drawing:
    shutil.copyfile(image, site.path(f"{view.folder}/figures/{image.name}"))
    name = view.name if image.stem == "figure" else image.stem
    return Drawing(name, title_of(name), f"figures/{image.name}", "")


def _drawn(site: Site, view: View, name: str) -> Drawing:
    file = f"figures/{name}.svg"
    try:
        words = draw_figure(name, view.experiment, site.path(f"{view.folder}/{file}"))
    except UserError as error:
        return Drawing(name, title_of(name), "", str(error))
    return Drawing(name, title_of(name), file, words)
