"""Colours of a report: text is read by everybody, in light and dark (WCAG 2, level AA)."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from mmbench.tables.figures.style import COLOURS

CSS = files("mmbench.tables.report").joinpath("assets", "report.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", block))
    for block in re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL)[:2]
)
TEXT = [
    ("--ink", "--paper"),
    ("--ink", "--wash"),
    ("--soft", "--paper"),
    ("--soft", "--wash"),
    ("--accent", "--paper"),
    ("--in-ink", "--in"),
    ("--out-ink", "--out"),
]


def channels(colour: str) -> list[float]:
    return [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]


def luminance(rgb: list[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(colour: list[float], other: list[float]) -> float:
    low, high = sorted(map(luminance, (colour, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "paper"), TEXT)
def test_text_has_the_contrast_of_level_aa(mode, ink, paper) -> None:
    assert contrast(channels(mode[ink]), channels(mode[paper])) >= 4.5


@pytest.mark.parametrize("mode", [LIGHT, DARK], ids=["light", "dark"])
def test_numbers_on_the_darkest_tint_can_be_read(mode) -> None:
    mixed = [
        0.65 * heat + 0.35 * paper
        for heat, paper in zip(channels(mode["--heat"]), channels(mode["--paper"]), strict=True)
    ]
    assert contrast(channels(mode["--ink"]), mixed) >= 4.5


@pytest.mark.parametrize("colour", COLOURS)
def test_points_stand_out_on_either_paper(colour) -> None:
    for mode in (LIGHT, DARK):
        assert contrast(channels(colour), channels(mode["--paper"])) >= 3
