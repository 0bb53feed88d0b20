"""Readings of the papers: each is a valid experiment, and the table and page say what was found."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mmbench.config.read import config_of
from mmbench.results.folder import CSV
from mmbench.results.statistics import z_value
from results.pages import readings as script
from results.pages.readings import (
    NOT_RUN,
    Reading,
    earlier,
    outside,
    place,
    readings,
    reference,
    standard_error,
    table,
)
from results.pages.readings_page import PAGE, entry, page, tables

EXPERIMENTS = tuple(dict.fromkeys(reading.of for reading in readings()))
PIMA = {"experiment": "mmrm_table1", "dataset": "pima", "kernel": "linear", "degree": None}


def test_every_reading_is_a_valid_experiment_with_the_cells_that_it_concerns(tmp_path: Path):
    script.write(tmp_path)
    for reading in (reading for reading in readings() if reading.set and reading.cells):
        config = config_of(script.config(reading), tmp_path / f"{reading.name}.yaml")
        datasets = {entry.label for entry in config.datasets}
        for cell in reading.cells:
            assert reading.datasets.get(cell["dataset"], cell["dataset"]) in datasets
            column = reading.columns.get(cell["machine"], cell["machine"])
            assert cell["kernel"] in config.kernels_of(column)
            assert cell["degree"] in (None, *(config.degree or ()))


def test_every_value_outside_the_band_of_an_experiment_has_readings():
    tables = (path.parent.name for path in script.REFERENCE.glob("*/table.csv"))
    runs = {reading.run for reading in readings()}
    runs.add("fsvm_table4_rsvm")  # its compared cells are the SVM's in fsvm_table4, on fewer splits
    assert set(EXPERIMENTS) == {name for name in tables if outside(name)} - runs
    for experiment in EXPERIMENTS:
        own = [reading for reading in readings() if reading.of == experiment]
        own = [reading for reading in own if reading.set or reading.run]
        assert all(any(r.concerns(cell) for r in own) for cell in outside(experiment))


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_rule_of_the_band_is_that_of_the_reference_tables(experiment: str):
    for cell in reference(experiment):
        if cell["in_band"] is not None:
            z = z_value(cell["measured"], cell["published"], standard_error(cell, cell))
            assert (abs(z) <= 2 + 1e-9) == cell["in_band"], cell


def test_the_table_follows_from_the_reference_tables_and_the_page_from_the_table():
    known = earlier()
    expected = {key_of(line): line for line in table(known)}
    assert list(expected) == list(known)
    for key, line in expected.items():
        assert line.get("z") == pytest.approx(known[key]["z"]), "run results/pages/readings.py"
    text = PAGE.read_text(encoding="utf-8")
    assert page() == text, "run results/pages/readings_page.py"


HEAD = "dataset,kernel,degree,machine,metric,measured,sd,n,in_band,status,note\n"


@pytest.fixture
def ran(tmp_path: Path):
    """Return a function that takes over lines of a run of a reading."""

    def collected(reading: str, *lines: str) -> script.Found:
        (tmp_path / reading).mkdir(exist_ok=True)
        (tmp_path / reading / CSV).write_text(HEAD + "".join(lines))
        return script.collect(tmp_path)

    return collected


def run_of(column: str, n: int, mean: float = 77.5) -> str:
    return f"{column},accuracy_pct,{mean},4.0,{n},,optimal,\n"


def key_of(line: script.Line) -> tuple[str, script.Place]:
    return line["reading"], place(line)


def test_a_run_is_taken_over_and_what_was_known_stays(ran):
    found = ran(
        "mmrm_table1_standard",
        run_of("pima,linear,,svm", 50),
        *(f"pima,linear,,svm,seconds_{stage},0.2,,50,,optimal,\n" for stage in script.STAGES),
        run_of("pima,linear,,m4", 9),
        "pima,linear,,mpm,accuracy_pct,,,,,missing,not run\n",
    )
    asked = ("mmrm_table1_standard", ("pima", "linear", None, "svm", "accuracy_pct"))
    assert [key for key in found if key[1][-1] == "accuracy_pct"] == [asked]
    rows = {key_of(x): x for x in table(found)}
    assert rows[asked]["in_band"] and rows[asked]["cpu_minutes"] == pytest.approx(0.5)
    of_m4 = rows[(asked[0], ("pima", "linear", None, "m4", "accuracy_pct"))]
    assert of_m4["status"] == NOT_RUN and of_m4["measured"] is None


def test_a_run_of_an_estimator_without_a_kernel_is_taken_over(ran):
    found = ran("fsvm_table2_within_scatter", run_of("ida_heart,,,released_fsvm", 20))
    assert [key[1][:4] for key in found] == [("ida_heart", "linear", None, "fsvm")]


def test_the_first_ten_splits_count_with_their_wider_band(ran):
    key = ("mmrm_table1_standard", ("pima", "linear", None, "m4", "accuracy_pct"))
    widths = {}
    for n in (10, 50):
        [line] = [x for x in table(ran(key[0], run_of("pima,linear,,m4", n))) if key_of(x) == key]
        assert (line["n"], line["splits"]) == (n, 50)
        widths[n] = line["half_width"]
    assert widths[10] == pytest.approx(widths[50] * (6 / 2) ** 0.5)


def test_a_reading_of_the_number_of_splits_needs_all_of_them(ran):
    assert not ran("fsvm_table2_splits100", run_of("ida_heart,linear,,fsvm", 99))
    assert ran("fsvm_table2_splits100", run_of("ida_heart,linear,,fsvm", 100))


def test_a_run_of_fewer_splits_does_not_take_the_place_of_one_of_more(ran, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "TABLE", tmp_path / "readings.csv")
    key = ("mmrm_table1_standard", ("pima", "linear", None, "m4", "accuracy_pct"))
    script.write_table({})
    for n, mean, stays in ((10, 70, 70), (50, 75, 75), (20, 80, 75)):
        script.write_table(ran(key[0], run_of("pima,linear,,m4", n, mean)))
        assert earlier()[key]["measured"] == stays


def test_a_printed_spread_takes_the_place_of_our_own_deviation():
    cell = {**PIMA, "machine": "svm", "metric": "accuracy_pct", "published_spread": 0.4}
    cell |= {"measured": 75.6, "sd": 3.0 * 50**0.5, "n": 50}
    assert standard_error(cell, cell) == pytest.approx(3.0 * 2**0.5)
    assert standard_error(cell, cell, "se") == pytest.approx((9 + 0.4**2) ** 0.5)
    assert standard_error(cell, cell, "sd") == pytest.approx((9 + 0.4**2 / 50) ** 0.5)


def made(base, **lines):
    """Return the cell and the attempts for a line of the reference run and lines of readings."""
    base = {**PIMA, "experiment": "own", "machine": "svm", "cpu_minutes": 1.0} | base
    rows = [base | {"reading": "own", "status": "optimal"}]
    rows += [base | line | {"reading": name} for name, line in lines.items()]
    cells, found = tables(pd.DataFrame(rows))
    return next(cells.itertuples()), found


def with_flag(found, flag):
    return list(found.reading[found[flag]])


DONE = {"in_band": "True", "n": 50, "splits": 50, "status": "optimal"}


def test_chance_is_that_of_new_draws():
    """At the edge of a wide band a new draw is near half the time, in two draws three of four."""
    base = {"measured": 90.0, "sd": 1.0, "n": 100, "published": 91.0, "half_width": 1.0}
    near = DONE | {"measured": 90.5, "half_width": 1.0}
    mirrored = near | {"measured": 88.5, "in_band": "False"}
    names = [reading.name for reading in readings() if not reading.spread][:3]
    lines = (near, mirrored, {"status": NOT_RUN})
    cell, found = made(base, **dict(zip(names, lines, strict=True)))
    assert cell.redraw == pytest.approx(0.5)
    assert cell.redrawn_once == pytest.approx(0.75)
    assert (with_flag(found, "near"), with_flag(found, "mirrored")) == ([names[0]], [names[1]])
    assert (cell.near, cell.mirrored, cell.tried) == (1, 1, 2)


def test_a_wider_band_alone_does_not_come_closer():
    base = {"measured": 90.0, "sd": 1.0, "n": 100, "published": 94.0, "half_width": 1.0}
    lines = {
        "wider": DONE | {"measured": 90.0, "half_width": 5.0},
        "nearer": DONE | {"measured": 93.0, "half_width": 1.0},
    }
    _, found = made(base, **lines)
    flags = ("near", "closer", "mirrored", "closer_mirrored")
    shown = [with_flag(found, flag) for flag in flags]
    assert shown == [["wider", "nearer"], ["nearer"], ["wider"], []]


def test_the_page_says_how_many_splits_were_run_where_not_all_were():
    base = {"metric": "accuracy_pct", "measured": 90.0, "published": 94.0}
    base |= {"sd": 1.0, "n": 100, "half_width": 1.0}
    whole = DONE | {"measured": 93.0, "half_width": 1.0, "in_band": "False"}
    _, found = made(base, all=whole, part=whole | {"n": 10})
    assert with_flag(found, "part") == ["part"]
    assert (entry(found, "all"), entry(found, "part")) == ("93.00 ✗", "93.00 ✗, n = 10")


def test_a_reading_that_nobody_ran_is_said_to_be_so():
    reading = Reading("x", "mmrm_table1", "other", "silent", set={"preprocess": "none"}, times=3)
    cell = outside("mmrm_table1")[0]
    line = script._measured(reading, cell, {})
    assert line == {"cpu_minutes": 3 * cell["cpu_minutes"], "status": NOT_RUN}
