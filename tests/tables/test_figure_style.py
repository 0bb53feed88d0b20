"""The style of figures: sizes of columns, marks beside colours, vector files that do not change."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd
import pytest
from helpers.drawn import figure

from mmbench.errors import UserError
from mmbench.machines import MACHINES
from mmbench.resources import REFERENCE
from mmbench.results.folder import read_reference
from mmbench.tables.figures import draw_figure
from mmbench.tables.figures.style import (
    COLOURS,
    COLUMN,
    DASHES,
    LOOKS,
    MARKS,
    PAGE,
    STYLE,
    colour,
    data_names,
    drawing,
    looks,
    mark,
)


@pytest.mark.parametrize("width", [COLUMN, PAGE])
def test_a_figure_is_as_wide_as_a_column_or_a_page(tmp_path, width) -> None:
    output = tmp_path / "one.svg"
    with drawing(output, width, 2.0) as canvas:
        canvas.subplots().plot([0, 1], [0, 1])
    (points,) = re.findall(r'<svg [^>]*?width="([\d.]+)pt"', output.read_text())
    assert float(points) == pytest.approx(72 * width)


@pytest.mark.parametrize("suffix", ["pdf", "svg"])
def test_the_same_results_give_the_same_vector_file(margin_ratios, tmp_path, suffix) -> None:
    folder = margin_ratios().folder
    first, second = tmp_path / f"first.{suffix}", tmp_path / f"second.{suffix}"
    for output in (first, second):
        figure("mmrm_fig2", folder, output)
    assert first.read_bytes() == second.read_bytes()


def test_letters_are_those_of_a_paper_and_colours_are_not_alone() -> None:
    from matplotlib import rcParams, style

    with style.context(STYLE):
        assert (rcParams["font.size"], rcParams["axes.titlesize"]) == (8, 9)
    assert len(set(MARKS)) == len(MARKS) == len(COLOURS) == len(set(COLOURS))
    assert len(set(DASHES)) == len(DASHES) >= 6


def test_the_style_is_that_of_the_figure_alone(tmp_path) -> None:
    from matplotlib import rcParams

    before = dict(rcParams)
    with drawing(tmp_path / "one.png", COLUMN, 1.0):
        assert rcParams["font.size"] == 8
    assert dict(rcParams) == before


def test_without_matplotlib_a_figure_names_the_extra(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    figure = drawing(tmp_path / "one.svg", COLUMN, 2.0)
    with pytest.raises(UserError, match=r"pip install 'mmbench\[report\]'"):
        figure.__enter__()


@pytest.mark.parametrize("name", ["machines", "time_and_accuracy"])
def test_a_drawing_without_matplotlib_names_the_extra(results, tmp_path, monkeypatch, name) -> None:
    experiment = results.experiment("own")
    for dataset in ("iris", "wine"):
        for machine in ("svm", "rmm"):
            experiment.add(experiment.job(dataset, machine))
    for module in [m for m in sys.modules if m.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "matplotlib.ticker", None)
    with pytest.raises(UserError, match=r"pip install 'mmbench\[report\]'"):
        figure(name, experiment.folder, tmp_path / "one.svg")


@pytest.mark.parametrize("name", ["machines", "time_and_accuracy"])
def test_dollars_in_a_label_are_no_formula(results, tmp_path, name) -> None:
    label = r"a $\bad{$ b"
    experiment = results.experiment("own", labels={"svm": label, "rmm": label + " c"})
    for dataset in ("iris", "wine"):
        for machine in ("svm", "rmm"):
            experiment.add(experiment.job(dataset, machine))
    assert label in figure(name, experiment.folder, tmp_path / "one.svg")


def test_a_machine_has_one_colour_and_marker_in_the_pictures_of_all_papers() -> None:
    """In each reference table, colours and markers tell the compared machines apart."""
    assert {*MACHINES} <= {*LOOKS}
    assert len({(colour(k), mark(k)) for k in LOOKS.values()}) == len(LOOKS)
    for path in sorted(Path("results/reference").glob("*/table.csv")):
        table = pd.read_csv(path)
        machines = list(table.machine[table.in_band.notna()].unique())
        assert {*machines} <= {*LOOKS}, path
        found = looks(machines)
        for choose in (colour, mark):
            assert len({choose(k) for k in found.values()}) == len(machines), path


def test_other_machines_look_different_from_known_ones() -> None:
    found = looks(["mine", "svm", "other"])
    assert found["svm"] == looks(["svm"])["svm"]
    assert len({(colour(k), mark(k)) for k in found.values()}) == 3


def test_data_sets_have_readable_and_distinct_names() -> None:
    names = data_names(["breast_wisconsin", "ida_heart", "german", "ida_german", "my_table"])
    assert names == {
        "breast_wisconsin": "Breast cancer Wisconsin (original)",
        "ida_heart": "Heart disease (Statlog)",
        "german": "german",
        "ida_german": "ida_german",
        "my_table": "my_table",
    }


def test_panels_are_stacked_in_a_narrow_figure(tmp_path) -> None:
    results, heights = read_reference(REFERENCE / "m4_table2"), []
    for width in (PAGE, COLUMN):
        draw_figure("published", results, tmp_path / "one.svg", width=width)
        text = (tmp_path / "one.svg").read_text()
        heights += map(float, re.findall(r'<svg [^>]*?height="([\d.]+)pt"', text))
    assert heights[1] == pytest.approx(2 * heights[0])


def test_no_text_of_a_narrow_diagram_of_ranks_is_cut(tmp_path, monkeypatch) -> None:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    cut, save = [], Figure.savefig

    def look(canvas, *args, **options) -> None:
        canvas.draw_without_rendering()
        texts = [text for text in canvas.findobj(Text) if "mean rank" in text.get_text()]
        cut.extend(t.get_text() for t in texts if t.get_window_extent().x1 > canvas.bbox.x1)
        save(canvas, *args, **options)

    monkeypatch.setattr(Figure, "savefig", look)
    results = read_reference(REFERENCE / "verdict")
    draw_figure("critical_difference", results, tmp_path / "one.svg", width=COLUMN)
    assert not cut
