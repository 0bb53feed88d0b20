"""What stands below the results of every table: selected parameters and certificates."""

from mmbench.tables.blocks.seconds import place_columns, place_heads
from mmbench.tables.model import NOTHING, Column, Grid
from mmbench.tables.sheet import Sheet
from mmbench.tables.summaries.fits import Fits

#: What the words of a choice mean.
CHOICES = "median over splits and pairs; (min, max: how many choices lie at an end of the grid)"


def parameters(sheet: Sheet) -> Grid:
    """Return what each machine has selected from its own grid, medians over the choices."""
    chosen = [
        machine
        for machine in sheet.machines
        if any(sheet.facts.selected.get(p._replace(machine=machine)) for p in sheet.places)
    ]
    rows = []
    for place in sheet.places if chosen else []:
        found = (sheet.facts.selected.get(place._replace(machine=m), ()) for m in chosen)
        texts = [", ".join(map(str, one)) or NOTHING for one in found]
        rows.append([place.dataset, *place_heads(place), *texts])
    caption = f"Selected parameters: {CHOICES}"
    return Grid(place_columns(sheet, "data set", chosen), rows, caption)


def certificates(sheet: Sheet) -> Grid:
    """Return how the fits of each machine ended, their gaps and the largest violation."""
    words = sheet.columns("machine", "fits", machines=())
    numbers = ("gap asked", "median gap", "largest gap", "gaps above", "largest violation")
    found = ((m, sheet.facts.fits[m]) for m in sheet.configured if m in sheet.facts.fits)
    rows = [[sheet.label(machine), fits.ended(), *_figures(fits)] for machine, fits in found]
    caption = "Certificates of all fits: relative duality gaps, violations of constraints"
    return Grid((*words, *map(Column, numbers)), rows, caption)


def _figures(fits: Fits) -> list[str]:
    above = NOTHING if fits.n_above is None else f"{fits.n_above} of {len(fits.gaps)}"
    gaps = fits.gap_tolerance, fits.median_gap, fits.worst_gap
    return [*map(_text, gaps), above, _text(fits.worst_violation)]


def _text(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1e}"
