"""The pages of a report: what they say, where their links lead, and what they refuse."""

from __future__ import annotations

import csv
import gzip
import re
import shutil
from itertools import product
from urllib.parse import unquote

import pandas as pd
import pytest

from mmbench.commands.outputs import report
from mmbench.errors import UserError
from mmbench.jobs.job import SelectRef
from mmbench.jobs.store import CONFIG, PLAN
from mmbench.resources import REFERENCE
from mmbench.tables.report import tables_as_html
from mmbench.tables.text import Column, Grid, Table, Text


def test_every_link_leads_to_a_file_and_every_mark_to_its_note(both) -> None:
    for path, page in both.items():
        ids = page.all("id")
        assert len(ids) == len(set(ids)), path
        for href in [*page.all("href"), *page.all("src")]:
            if href.startswith("#"):
                assert href[1:] in ids, (path, href)
            elif not href.startswith("data:"):
                assert (page.path.parent / unquote(href)).is_file(), (path, href)


def test_nothing_is_asked_of_a_network(both) -> None:
    for page in both.values():
        assert not [href for href in [*page.all("href"), *page.all("src")] if "//" in href]


def test_names_of_data_are_text_whatever_they_hold(both) -> None:
    for path, page in both.items():
        scripts = [attributes for tag, attributes in page.tags if tag == "script"]
        inline = [attributes["type"] for attributes in scripts if "src" not in attributes]
        assert set(inline) <= {"application/json"}, path
    assert "<script>alert('x')</script>\"/../&amp;" in both["evil/index.html"].text


def test_an_experiment_shows_the_papers_table_with_marked_cells(both) -> None:
    page = both["usps_rbf/index.html"]
    assert "91 / 98 ~" in page.text
    assert sum("in" in classes.split() for classes in page.all("class")) >= 3
    assert "3 of 3 compared" in page.text
    assert {"usps_rbf/cells/usps-rbf-svm.html", "usps_rbf/cells/usps-rbf-svm.csv"} <= {
        str(path.relative_to(page.path.parents[1])) for path in page.path.parent.rglob("*.*")
    }


def test_details_tell_mean_spread_number_published_value_and_difference(both) -> None:
    text = " ".join(both["usps_rbf/index.html"].text.split())
    assert "errors 91, standard error 9.3, n = 1" in text
    assert "published errors 98 difference −7, 0.75 standard errors: in the band" in text


def test_sizes_that_differ_between_splits_are_a_range(results, pages) -> None:
    experiment = results.experiment("own", datasets=["mine"])
    for repeat, n_train in enumerate((60, 20, 40)):
        split = {"digest": str(repeat), "n_train": n_train, "n_test": 10, "n_features": 3}
        experiment.add(experiment.job("mine", "svm", repeat=repeat), split=split)
    text = pages(experiment.folder)["own/index.html"].path.read_text()
    cells = re.findall('<td class="right">(.*?)</td>', text.split("content hash")[1])
    assert cells == ["20 to 60", "10", "3", "2", "3"]  # classes and splits are the last two


def test_failures_are_listed_with_their_reasons(both) -> None:
    assert "2 of 3 splits done, 1 failed (took over 600 s)" in both["evil/index.html"].text
    assert "took over 600 s" in both["evil/cells/iris-rbf-rmm.html"].text


def test_a_cell_shows_its_selection_and_where_parameters_come_from(both) -> None:
    svm, rmm = both["evil/cells/iris-rbf-svm.html"], both["evil/cells/iris-rbf-rmm.html"]
    assert "● 3" in svm.text and "89.00" in svm.text
    assert "../cells/iris-rbf-svm.html" in rmm.all("href")


def test_a_grid_with_none_is_shown_with_it(results, pages) -> None:
    experiment = results.experiment("trees", datasets=["iris"], machines=["svm"])
    grid = (("C", (None, 2, 3)), ("gamma", ("scale", 0.1)))
    points = [{"C": C, "gamma": g} for C in (None, 2, 3) for g in ("scale", 0.1)]
    scores = [{**point, "score": 0.8 + k / 50} for k, point in enumerate(points)]
    for repeat, k in enumerate((0, 1, 4)):
        job = experiment.job("iris", "svm", grid=grid, repeat=repeat)
        experiment.add(job, selection={"params": points[k], "scores": scores})
    found = pages(experiment.folder)
    html = found["trees/cells/iris-rbf-svm.html"].path.read_text()
    assert re.findall(r"<th[^>]*>(2|3|None|0\.1|scale)</th>", html) == [
        "0.1",
        "scale",
        "2",
        "3",
        "None",
    ]
    assert html.count("● 1") == 3
    assert "C 3 (None 2/3)" in found["trees/index.html"].text


def test_a_classifier_without_a_kernel_has_none_in_its_name(results, pages) -> None:
    experiment = results.experiment("trees", datasets=["iris"], machines=["svm"])
    for kernel in ("linear", "rbf"):
        experiment.add(experiment.job("iris", "svm", kernel=kernel))
    tree = "sklearn.tree:DecisionTreeClassifier"
    experiment.add(experiment.job("iris", tree, variant="tree", kernel="linear"))
    found = pages(experiment.folder)
    assert re.search(
        "<h1>(?i:tree) on iris</h1>", found["trees/cells/iris-linear-tree.html"].path.read_text()
    )
    assert "<h1>SVM on iris (rbf)</h1>" in found["trees/cells/iris-rbf-svm.html"].path.read_text()
    assert re.search(
        "Classifiers of other packages, in the rows of linear: (?i:tree)",
        found["trees/index.html"].text,
    )


def test_a_report_that_fails_does_not_block_the_next_one(usps, tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr("mmbench.tables.report.write_experiment", lambda *_: 1 / 0)
        report([usps.folder], tmp_path / "site")
    assert "Unfinished" in (tmp_path / "site" / "index.html").read_text()
    report([usps.folder], tmp_path / "site")
    assert "Unfinished" not in (tmp_path / "site" / "index.html").read_text()


def test_a_cell_counts_confusions_over_its_splits(both) -> None:
    page = both["evil/cells/iris-rbf-svm.html"]
    _, matrix = page.path.read_text().split('<section id="confusion">')
    counts = re.findall(r"<td[^>]*>(\d+)</td>", matrix.split("</section>")[0])
    assert len(counts) == 4 and sum(map(int, counts)) == 3 * 20


def test_every_split_of_a_cell_is_a_line_of_its_csv(both) -> None:
    page = both["evil/cells/iris-rbf-rmm.html"]
    with page.path.with_suffix(".csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["optimal", "optimal", "time_limit"]
    assert {row["dataset"] for row in rows} == {"iris"}
    number = '<td class="right">(\\d+)</td>'
    shown = re.findall(f"<tr>\\s*{number * 3}", page.path.read_text())
    assert shown == [(row["repeat"], row["fold"], row["seed"]) for row in rows]


@pytest.mark.parametrize("name", ["usps_rbf", "fsvm_table2", "m4_table1"])
def test_a_reference_table_has_a_page_per_cell_with_its_splits(pages, name) -> None:
    found = pages(REFERENCE / name)
    page = found[f"{name}/index.html"]
    assert "Run with mmbench" in page.text
    with gzip.open(REFERENCE / name / "splits.csv.gz", "rt") as file:
        stored = list(csv.DictReader(file))
    cells = [cell for path, cell in found.items() if "/cells/" in path]
    own = [row for cell in cells for row in rows_beside(cell)]
    values = ("dataset", "machine", "repeat", "fold", "errors_count", "record")
    assert _sorted(own, values) == _sorted(stored, values)
    assert all((page.path.parent / href).is_file() for href in page.all("href") if "cells/" in href)
    for cell in cells:
        rows, ids = rows_beside(cell), cell.all("id")
        assert ("selection" in ids, "confusion" in ids) == (any(r["test"] for r in rows), False)
        assert ("certificates" in ids) == any(row["certificates"] for row in rows)
        selected = "selected, with the number of selections out of" in cell.text
        assert selected == (len(rows) > 1 and any("[" in row["grid"] for row in rows))
        assert cell.text.count("no result") == sum(not r["accuracy_pct"] for r in rows)


def rows_beside(page) -> list[dict[str, str]]:
    """Return the rows of the CSV file beside the page of a cell."""
    with page.path.with_suffix(".csv").open() as file:
        return list(csv.DictReader(file))


def _sorted(rows, names) -> list[tuple[str, ...]]:
    return sorted(tuple(row[name] for name in names) for row in rows)


def test_a_reference_table_without_splits_has_no_cells(pages, tmp_path) -> None:
    folder = tmp_path / "m4_table1"
    folder.mkdir()
    for file in ("table.csv", "table.md"):
        shutil.copy(REFERENCE / "m4_table1" / file, folder)
    found = pages(folder)
    assert set(found) == {"index.html", "m4_table1/index.html"}
    page = found["m4_table1/index.html"]
    assert "there are no pages of single cells" in page.text
    assert any(tag == "button" for tag, _ in page.tags)


@pytest.mark.parametrize("column", ["n", "sd"])
def test_a_reference_table_without_numbers_of_splits_or_deviations_has_pages(
    pages, tmp_path, column
) -> None:
    folder = tmp_path / "quickstart"
    shutil.copytree(REFERENCE / "quickstart", folder)
    frame = pd.read_csv(folder / "table.csv").assign(**{column: ""})
    frame.to_csv(folder / "table.csv", index=False)
    found = pages(folder)
    index, cell = (found[f"quickstart/{name}.html"] for name in ("index", "cells/wdbc-rbf-svm"))
    assert "n = None" not in index.text and "None" not in cell.text
    assert "time-and-accuracy" in index.pictures()
    assert "splits-picture" in cell.pictures()
    assert ("Each point is a split; standard deviation" in cell.text) == (column == "n")
    assert "accuracy (%)" in cell.text.partition("All metrics")[2]


def test_splits_that_belong_to_no_row_of_the_table_give_no_traceback(pages, tmp_path) -> None:
    folder = shutil.copytree(REFERENCE / "quickstart", tmp_path / "quickstart")
    path = folder / "splits.csv.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b",rbf,", b",nan,")))
    assert "quickstart/index.html" in pages(folder)


def test_notes_of_a_reference_table_are_text_and_occur_once_with_its_rule(pages) -> None:
    text = pages(REFERENCE / "m4_table2")["m4_table2/index.html"].text
    assert text.count("In parentheses: standard error over 50 folds. It underestimates") == 1
    assert "standard error over 50 splits" not in text
    assert not re.search(r"^\[\d+\] ", text, re.M)  # a footnote is an item of the numbered list
    assert text.count("+ M4 better, − M4 worse at 0.05.") == 1
    assert "\\+ M4" not in text


def test_two_experiments_of_one_name_have_folders_of_their_own(usps, pages) -> None:
    found = pages(usps.folder, REFERENCE / "usps_rbf")
    assert {"usps_rbf/index.html", "usps_rbf-2/index.html"} <= set(found)


def test_records_of_machines_beside_an_experiment_are_linked(results, pages) -> None:
    host, guest = (results.experiment(name, datasets=["iris"]) for name in ("host", "guest"))
    host.add(host.job("iris", "svm"))
    guest.add(guest.job("iris", "rmm"))
    found = pages(host.folder, guest.folder)
    assert "guest/index.html" not in found
    page = found["host/cells/iris-rbf-rmm.html"]
    (link,) = [unquote(href) for href in page.all("href") if href.endswith(".json")]
    assert (page.path.parent / link).resolve().is_relative_to(guest.folder.resolve())


def test_links_in_a_report_are_replaced_and_not_followed(usps, tmp_path) -> None:
    victim, elsewhere, folder = (tmp_path / name for name in ("victim", "elsewhere", "report"))
    victim.write_text("precious")
    elsewhere.mkdir()
    report([usps.folder], folder)
    asset = folder / "assets" / "plotly.min.js"
    asset.unlink()
    asset.symlink_to(victim)
    shutil.rmtree(folder / "usps_rbf")
    (folder / "usps_rbf").symlink_to(elsewhere)
    report([usps.folder], folder)
    assert victim.read_text() == "precious" and not list(elsewhere.iterdir())
    assert not asset.is_symlink() and (folder / "usps_rbf" / "index.html").is_file()


def test_an_image_of_a_reference_folder_that_is_a_link_is_not_followed(tmp_path):
    folder = shutil.copytree(REFERENCE / "quickstart", tmp_path / "quickstart")
    (tmp_path / "secret").write_text("of the reader")
    (folder / "figure.png").symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match=r"figure\.png: cannot be read \(a link"):
        report([folder], tmp_path / "site")
    assert not [*(tmp_path / "site").rglob("figure.png")]


def test_a_folder_with_other_files_is_refused(usps, tmp_path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "index.html").write_text("my own page")
    with pytest.raises(UserError, match="contains other files than a report"):
        report([usps.folder], mine)
    assert (mine / "index.html").read_text() == "my own page"
    with pytest.raises(UserError, match="is a file"):
        report([usps.folder], mine / "index.html")


def test_what_was_not_run_is_grey_and_what_failed_is_framed(results, evil, pages) -> None:
    unfinished = results.experiment("unfinished", datasets=["iris"], machines=["svm", "rmm"])
    unfinished.add(unfinished.job("iris", "svm"))
    found = pages(unfinished.folder)
    kinds = found["unfinished/index.html"].all("class")
    assert any("absent" in names.split() for names in kinds)
    assert "doubt" not in [
        word for names in kinds[kinds.index("layout") :] for word in names.split()
    ]
    assert "right doubt" in pages(evil.folder)["index.html"].all("class")


def test_the_overview_counts_what_is_met_of_what_is_compared(both) -> None:
    assert "3 of 3 ✓" in both["index.html"].text


def test_an_experiment_counts_what_is_in_its_band_and_what_is_not_run(results, pages) -> None:
    machines = {"datasets": ["usps"], "machines": ["svm", "rmm", "mmrm"]}
    experiment = results.experiment("usps_rbf", **machines, layout="mmrm_table2")
    split = {"digest": "d", "origin": "official", "n_train": 7291, "n_test": 2007}
    for machine, errors in (("svm", 98), ("rmm", 300)):
        experiment.add(experiment.job("usps", machine), errors, 2007, split=split)
    text = pages(experiment.folder)["usps_rbf/index.html"].text
    assert "1 of 2 compared" in text
    assert "1 of 3 cells" in text


def test_without_a_plan_only_cells_with_records_are_shown(results, pages) -> None:
    """Without a plan, the number of rows that are left out once is unknown."""
    experiment = results.experiment("own")
    for repeat in range(3):
        experiment.add(experiment.job("pima", "svm", repeat=repeat, rule="leave_one_out"))
    (experiment.folder / PLAN).unlink()
    text = "name: own\ndatasets: [pima]\nprotocol: {test: leave_one_out}\n"
    (experiment.folder / CONFIG).write_text(text + "kernel: rbf\nmachines: {svm:, rmm:}\n")
    page = pages(experiment.folder)["own/index.html"].path.read_text()
    assert "<dt>incomplete</dt><dd>0 of 1 cells</dd>" in page
    assert "table cells without records are not shown" in page


def test_the_time_of_an_experiment_is_that_of_all_splits(results, pages) -> None:
    """Each of three splits has 10 s of selection, 1.5 s of training and 0.25 s of test."""
    experiment = results.experiment("own", datasets=["iris"], machines=["svm"], splits=3)
    for repeat in range(3):
        experiment.add(experiment.job("iris", "svm", repeat=repeat, rule="holdout"))
    found = pages(experiment.folder)
    assert all("35 s" in found[path].text for path in ("index.html", "own/index.html"))


def test_a_classifier_without_certificates_is_no_failure(results, pages) -> None:
    experiment = results.experiment("foreign", datasets=["iris"], machines=["rf"])
    fits = {"n": 1, "statuses": {"uncertified": 1}, "worst_violation": None, "worst_gap": None}
    experiment.add(experiment.job("iris", "rf"), fits=fits | {"n_support_mean": 0, "iterations": 0})
    page = pages(experiment.folder)["foreign/index.html"]
    assert "None: every split has a result; the fits have no certificates." in page.text
    assert sum("doubt" in names.split() for names in page.all("class")) == 1  # of the legend
    assert "in band" not in page.text  # nothing is compared with a paper


def source(pages, experiment) -> str:
    """Return the page of an experiment as it is written."""
    path = pages(experiment.folder)[f"{experiment.folder.name}/index.html"].path
    return path.read_text(encoding="utf-8")


def test_a_stop_by_the_papers_rule_is_no_worst_certificate(results, pages) -> None:
    experiment = results.experiment("rules", datasets=["iris"], machines=["fsvm", "svm"])
    by_rule = {"n": 1, "statuses": {"stopped_by_rule": 1}, "worst_violation": 0, "worst_gap": 1.8}
    solved = {"n": 1, "statuses": {"optimal": 1}, "worst_violation": 0, "worst_gap": 3e-7}
    for machine, fits in (("fsvm", by_rule), ("svm", solved)):
        fits = fits | {"n_support_mean": 0, "iterations": 0}
        experiment.add(experiment.job("iris", machine), fits=fits)
    text = source(pages, experiment)
    (tile,) = re.findall(r"worst certificate</dt><dd>(.*?)</dd>", text)
    assert tile.startswith("gap 3.0e-07")
    assert tile.endswith("gap 1.8e+00 if stopped by the rule of the paper")
    assert "and every fit is optimal or was stopped by the rule of the paper." in text


def test_the_worst_gap_is_the_largest_relative_to_its_tolerance(results, pages) -> None:
    experiment = results.experiment("worst", datasets=["iris"], machines=["rmm", "svm"])
    for machine, gap, tolerance in (("rmm", 9e-4, 1e-3), ("svm", 5e-6, 1e-6)):
        fits = {"n": 1, "statuses": {"optimal": 1}, "worst_violation": 0, "worst_gap": gap}
        fits |= {"gap_tolerance": tolerance, "n_support_mean": 0, "iterations": 0}
        experiment.add(experiment.job("iris", machine), fits=fits)
    text = source(pages, experiment)
    (tile,) = re.findall(r"worst certificate</dt><dd>(.*?)</dd>", text)
    assert tile.startswith("gap 5.0e-06 (tolerance 1.0e-06)")
    assert "None: every split has a result, and every fit is optimal." in text


def test_the_worst_violation_is_the_largest_of_all_cells(results, pages) -> None:
    experiment = results.experiment("worst", datasets=["iris"], machines=["svm", "rmm"])
    for machine, violation in (("svm", 1e-9), ("rmm", 1e-2)):
        fits = {"n": 1, "statuses": {"optimal": 1}, "worst_violation": violation}
        fits |= {"worst_gap": 1e-9, "n_support_mean": 0, "iterations": 0}
        experiment.add(experiment.job("iris", machine), fits=fits)
    (tile,) = re.findall(r"worst certificate</dt><dd>(.*?)</dd>", source(pages, experiment))
    assert tile.endswith("violation 1.0e-02")


@pytest.mark.parametrize("gap, shown", [(0.0, "<1e-15"), (-1e-17, "<1e-15"), (2e-6, "2.0e-06")])
def test_a_gap_of_zero_is_shown_as_a_bound(results, pages, gap, shown) -> None:
    experiment = results.experiment("gaps", datasets=["iris"], machines=["svm"])
    fits = {"n": 1, "statuses": {"optimal": 1}, "worst_violation": 0, "worst_gap": gap}
    experiment.add(
        experiment.job("iris", "svm"), fits=fits | {"n_support_mean": 0, "iterations": 0}
    )
    found = pages(experiment.folder)
    for path in ("gaps/index.html", "gaps/cells/iris-rbf-svm.html"):
        cells = re.findall(r"<td[^>]*>([^<]*)</td>", found[path].path.read_text())
        assert shown.replace("<", "&lt;") in cells
        assert "0e+00" not in cells and "0.0e+00" not in cells


def test_deviations_end_with_one_full_stop(results, pages) -> None:
    experiment = results.experiment("own", datasets=["mine"], machines=["svm"])
    warnings = ["mine: drawn at random.", "another sentence"]
    experiment.add(experiment.job("mine", "svm"), warnings=warnings)
    text = source(pages, experiment)
    assert "<b>mine</b>: drawn at random; another sentence.</p>" in text


@pytest.mark.parametrize(("layout", "folded"), [("mmrm_table2", False), ("generic", True)])
def test_no_block_that_the_paper_prints_is_folded(results, pages, layout, folded) -> None:
    experiment = results.experiment("large", layout=layout)
    experiment.add_many(["usps", *(f"set_{k}" for k in range(31))], ("svm",), n_splits=1)
    first = source(pages, experiment).split('<table class="layout">')[1]
    assert first.count("<tr") > 32 and ("</details>" in first) == folded


def test_footnotes_in_bold_and_signed_cells_are_links_and_print_is_not_parsed() -> None:
    cells = [Text("1_2", " (0.1)", " / 3 [7]", "✓", bold=True, sign="⁻", cited=(1, 2), tail=": x")]
    grid = Grid((Column("a [3]"),), [[*cells], ["plain [1]"]], Text("caption", cited=(2,)))
    html = tables_as_html([Table("t: u", [grid], [], ["first", "second"], "own")])
    link = '<sup><a href="#note-{0}" aria-label="note {0}">{0}</a></sup>'
    assert f"caption{link.format(2)}</caption>" in html and "<h4>own: t: u</h4>" in html
    shown = f"<strong>1_2 (0.1)⁻</strong> / 3 [7] ✓{link.format(1)}{link.format(2)}: x"
    assert shown in html and "plain [1]" in html and html.count("<sup>") == 3


def test_names_of_data_sets_break_after_underscores(results, pages) -> None:
    experiment = results.experiment("own", datasets=["a_long_name"], machines=["svm"])
    experiment.add(experiment.job("a_long_name", "svm"))
    heads = re.findall(r'<th scope="row">(a_.*?)</th>', source(pages, experiment), re.S)
    assert len(heads) >= 2 and {head.split("<br>")[0] for head in heads} == {
        "a_<wbr>long_<wbr>name"
    }


def test_features_of_data_without_a_card_are_counted(results, pages) -> None:
    experiment = results.experiment("own", datasets=["mine"], machines=["svm"])
    job = experiment.job("mine", "svm")
    split = {"digest": "d", "origin": "x", "n_train": 80, "n_test": 20, "n_features": 7}
    experiment.add(job, split=split)
    text = source(pages, experiment)
    assert '<td class="right">80</td><td class="right">20</td>\n<td class="right">7</td>' in text


def test_a_fit_without_a_certificate_has_neither_gap_nor_violation(results, pages) -> None:
    experiment = results.experiment("foreign", datasets=["iris"], machines=["rf"])
    pair = {"pair": [0, 1], "status": "uncertified", "gap": None, "max_violation": None}
    experiment.add(experiment.job("iris", "rf"), per_pair=[pair | {"extra": {}}])
    (path,) = [p for p in pages(experiment.folder) if "cells/" in p]
    text = pages(experiment.folder)[path].path.read_text()
    row = re.search(r'<tr><th scope="row">0 / 1</th>.*?</tr>', text, re.S)[0]
    assert re.findall(r'<td class="right">(.*?)</td>', row)[1:3] == ["–", "–"]


@pytest.mark.parametrize(
    "statuses, gap, marked",
    [(("optimal", "optimal"), "3.0e-07", False), (("optimal", "inaccurate"), "5.0e-01", True)],
)
def test_a_pair_has_its_largest_gap_and_a_mark_if_a_fit_is_in_doubt(
    results, pages, statuses, gap, marked
) -> None:
    experiment = results.experiment("own", datasets=["iris"], machines=["svm"])
    gaps = {"optimal": 3e-7, "inaccurate": 0.5}
    for repeat, status in enumerate(statuses):
        pair = {"pair": [0, 1], "status": status, "gap": gaps[status] * (repeat or 1e-3)}
        job = experiment.job("iris", "svm", repeat=repeat, rule="holdout")
        experiment.add(job, per_pair=[pair | {"max_violation": 0.0, "extra": {}}])
    html = pages(experiment.folder)["own/cells/iris-rbf-svm.html"].path.read_text()
    row = re.search(r'<tr><th scope="row">0 / 1</th>.*?</tr>', html, re.S)[0]
    assert re.findall(r'<td class="right">(.*?)</td>', row)[1] == gap
    assert ('class="doubt"' in row) == marked


def test_scores_are_the_best_over_further_parameters(results, pages) -> None:
    """Three parameters have grids; the table shows the two with the most values."""
    experiment = results.experiment("own", datasets=["iris"], machines=["svm"])
    grid = (("C", (1, 10, 100)), ("degree", (2, 3)), ("gamma", (0.1, 1.0, 2.0)))
    names, values = zip(*grid, strict=True)
    points = [dict(zip(names, point, strict=True)) for point in product(*values)]
    scores = [{**point, "score": 0.7 if point["degree"] == 3 else 0.5} for point in points]
    job = experiment.job("iris", "svm", grid=grid)
    experiment.add(job, selection={"params": points[0], "scores": scores, "n_points": 18})
    text = pages(experiment.folder)["own/cells/iris-rbf-svm.html"].text
    assert "at the best degree" in text
    assert text.count("70.00") == 9 and "50.00" not in text


@pytest.mark.parametrize(
    "metric, heading, score", [("mcc", "MCC", "0.890"), ("accuracy", "Accuracy (%)", "89.00")]
)
def test_scores_of_the_selection_have_the_name_of_their_metric(
    results, pages, metric, heading, score
) -> None:
    experiment = results.experiment("mine", datasets=["iris"], machines=["svm"])
    grid = (("C", (1, 10)), ("gamma", (0.1, 1.0)))
    job = experiment.job("iris", "svm", grid=grid, select=SelectRef(metric=metric))
    scores = [{"C": C, "gamma": 0.1, "score": 0.79 + C / 100} for C in (1, 10)]
    chosen = {"C": 10, "gamma": 0.1}
    experiment.add(job, selection={"params": chosen, "scores": scores, "n_points": 4})
    text = pages(experiment.folder)["mine/cells/iris-rbf-svm.html"].text
    assert f"{heading} in the selection, one split" in text
    assert score in text


def test_a_good_cell_that_is_not_compared_is_no_failure(results, pages) -> None:
    experiment = results.experiment("usps_rbf", layout="mmrm_table2")
    experiment.add(experiment.job("usps", "svm"), 98, 2007)  # trained on 200 rows
    page = pages(experiment.folder)["usps_rbf/index.html"]
    assert "200 rows, the paper on 7291: not comparable" in page.text
    assert "None: every split has a result" in page.text
    assert sum("doubt" in names.split() for names in page.all("class")) == 1  # of the legend
