"""Drawn tables: layouts, formats, and what a user gets for wrong input."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.drawn import table

from mmbench import resources
from mmbench.commands import outputs as tables
from mmbench.commands.listing import layout_rows
from mmbench.errors import Status, UserError
from mmbench.jobs.job import SelectRef, SplitRef
from mmbench.results import load
from mmbench.tables.layouts import LAYOUTS


def lines_of(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"| {start}")]


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.fixture
def table1(results):
    """Table 1 of the MMRM paper in small: a failed split, a missing machine, published columns."""
    experiment = results.experiment(
        "mmrm_table1",
        datasets=["pima", "sonar"],
        kernel=["linear", "rbf"],
        machines=["svm", "rmm", "mmrm"],
        splits=3,
        published_only=["m4", "mpm"],
        layout="mmrm_table1",
    )
    for dataset, machine in (("pima", "svm"), ("pima", "mmrm"), ("sonar", "svm")):
        for repeat in range(3):
            for kernel in ("linear", "rbf"):
                job = experiment.job(dataset, machine, repeat=repeat, rule="holdout", kernel=kernel)
                if machine == "mmrm" and repeat == 2:
                    experiment.fail(job, Status.TIME_LIMIT, "took over 600 s")
                else:
                    deviations = ["zeros are kept"] if dataset == "pima" else []
                    experiment.add(job, 15 + repeat, 77, deviations=deviations)
    return experiment


# -- bold --------------------------------------------------------------------------------------


def drawn(results, errors: dict[str, tuple[int, ...]], rule: str = "holdout", n: int = 100, **more):
    """The cells of the data set heart; each machine errs on the first of `n` rows of a split."""
    experiment = results.experiment("own", **more)
    for machine, counts in errors.items():
        for repeat, count in enumerate(counts):
            index = np.arange(n) + (0 if rule == "official" else n * repeat)
            predicted = (np.arange(n) < count).astype(int)
            arrays = {"y_test": np.zeros(n, dtype=int), "predicted": predicted}
            arrays |= {"test_index": index, "decisions": np.ones((n, 1))}
            job = experiment.job("heart", machine, repeat=repeat, rule=rule)
            experiment.add(job, count, n, arrays=arrays)
    return experiment.folder


FAR = "No tested difference from the best machine in this table is larger than chance."
#: Errors of the machines, rule of the splits, and expected cells.
MARKED = [
    ({"svm": (10, 12, 11, 14, 9), "rmm": (11, 11, 12, 13, 9)}, "holdout", ["**88.8", "**88.8"]),
    ({"svm": (10, 12, 11, 14, 9), "mmrm": (30, 31, 33, 34, 29)}, "holdout", ["**88.8", "68.6"]),
    ({"svm": (10, 12), "mmrm": (30, 31)}, "holdout", ["**89.0", "69.5"]),
    ({"svm": (5,), "rmm": (8,)}, "official", ["**95.0**", "92.0"]),
    ({"svm": (5,), "rmm": (17,)}, "official", ["**95.0**", "83.0⁻"]),
    ({"svm": (5,)}, "official", ["95.0"]),
]


@pytest.mark.parametrize(("errors", "rule", "cells"), MARKED)
def test_bold_is_the_best_mean_and_a_sign_is_beyond_chance(results, errors, rule, cells):
    folder = drawn(results, errors, rule)
    text, signed = table(folder), any("⁻" in cell for cell in cells) or "68.6" in cells
    found = cells_of(lines_of(text, "heart")[0])[2:]
    assert all(cell.startswith(start) for cell, start in zip(found, cells, strict=True))
    assert any("⁻" in cell for cell in found) == signed == ("⁻ worse than" in text)
    tested = rule == "official" or len(errors["svm"]) >= 5
    assert (FAR in text) == (tested and not signed and len(errors) > 1)
    assert ("fewer than 5 splits" in text) == (not tested)
    latex = table(folder, fmt="latex")
    assert (r"\textbf" in latex) == (len(errors) > 1) and ("$^-$" in latex) == signed
    plain = table(folder, bold=False)
    assert "**8" not in plain and "**9" not in plain


# -- layouts -----------------------------------------------------------------------------------


def test_table_2_shows_errors_measured_and_published_with_the_mark(usps) -> None:
    text = table(usps.folder)
    (line,) = lines_of(text, "Usps     |   7291")
    assert cells_of(line)[1:] == [
        "7291",
        "2007",
        "256",
        "10",
        "92 / 89 ~",
        "**90** / 96 ~",
        "91 / 98 ~",
    ]
    assert re.search(r"#classes \|\s+MMRM \|\s+RMM \|\s+SVM \|", text)
    assert "within 2 standard errors" in text


def test_table_2_shows_ties_expected_errors_and_seconds(usps) -> None:
    text = table(usps.folder)
    (line,) = [line for line in text.splitlines() if re.match(r"\| Usps +\| MMRM", line)]
    assert cells_of(line)[2:7] == ["3", "91.5", "10.0", "1.50", "0.25"]


def test_table_1_has_a_measured_and_a_published_line_in_the_papers_order(table1) -> None:
    text = table(table1.folder)
    linear, rbf = text.split("**RBF kernel**")
    head, *_ = lines_of(linear, "data")
    assert cells_of(head)[2:] == ["MMRM", "SVM", "RMM", "M4", "MPM"]
    published = ["76.6 (0.4)", "77.9 (0.4)", "76.1 (0.5)", "77.7 (0.4)", "77.5 (0.4)"]
    assert cells_of(lines_of(linear, " ")[0]) == ["", "published", *published]
    assert len(lines_of(rbf, "Sonar")) == 1


def test_a_column_that_is_published_only_has_a_dash_for_ours(table1) -> None:
    (line,) = lines_of(table(table1.folder).split("**RBF kernel**")[0], "Pima")
    assert cells_of(line)[-2:] == ["–", "–"]


def test_failed_and_missing_cells_are_marked(table1) -> None:
    text = table(table1.folder, bold=False)
    pima, sonar = (lines_of(text, name)[0] for name in ("Pima", "Sonar"))
    assert re.search(r"\(\d\.\d\) \[\d\]", cells_of(pima)[2])
    assert cells_of(sonar)[2] == "not run"
    assert "2 of 3 splits done, 1 failed (took over 600 s)" in text


def test_a_cell_without_any_result_names_its_status(results) -> None:
    experiment = results.experiment("own")
    experiment.add(experiment.job("pima", "svm"))
    experiment.fail(experiment.job("pima", "mmrm"), Status.MEMORY_LIMIT, "needs 9 GB")
    text = table(experiment.folder)
    assert "memory limit [1]" in text
    assert "needs 9 GB" in text


def test_deviations_are_cited_at_the_data_set(table1) -> None:
    text = table(table1.folder)
    mark = re.search(r"\| Pima (\[\d\])", text)
    assert mark
    assert f"{mark[1]} pima: zeros are kept" in text


def test_what_is_said_of_several_is_said_once(results) -> None:
    experiment = results.experiment("own")
    for dataset in ("heart", "pima"):
        for machine in ("svm", "rmm"):
            fits = {"statuses": {"trivial": 1}, "n_support_mean": 1.0}
            job = experiment.job(dataset, machine)
            experiment.add(job, fits=fits, deviations=[f"{dataset}: drawn here"])
    notes = [line for line in table(experiment.folder).splitlines() if line.startswith("- [")]
    assert notes == [
        "- [1] heart, pima: drawn here",
        "- [2] SVM, RMM on heart, pima (rbf): of 1 fits 1 trivial",
    ]


@pytest.mark.parametrize(
    ("rule", "repeats", "legend"),
    [
        ("official", 1, "for a single run, sqrt(e (1 - e/N)), the binomial standard deviation"),
        ("official", 2, "for a mean over seeds of the selection, sd sqrt(1/n + 1/m)"),
        (
            "holdout",
            2,
            "sd sqrt(1/n + 1/m), where sd is our standard deviation, and n and m are the numbers "
            "of random partitions here and in the paper (m = 1).",
        ),
    ],
)
def test_the_legend_says_how_marks_were_reckoned(results, rule, repeats, legend) -> None:
    experiment = results.experiment("usps_rbf", layout="mmrm_table2")
    split = {"n_train": 7291, "n_test": 2007}
    for repeat in range(repeats):
        job = experiment.job("usps", "svm", repeat=repeat, rule=rule)
        experiment.add(job, 90 + repeat, 2007, split=split)
    text = table(experiment.folder)
    assert "within 2 standard errors of the difference" in text
    assert f"Standard error of the difference: {legend}" in text


def test_a_table_says_what_was_done(results) -> None:
    experiment = results.experiment("own")
    select = SelectRef(folds=4, repeats=2)
    grid = (("C", (1.0, 10.0, 100.0)),)
    steps = (("impute", "median"), ("standard", None), ("pca", 80))
    for fold in range(5):
        split = SplitRef("kfold", (5.0,), 0, fold, 7)
        svm = experiment.job("pima", "svm", grid=grid, select=select)
        rmm = experiment.job("pima", "rmm", use="svm", parent="of the split")
        for job in (svm, rmm):
            dataset = replace(job.dataset, preprocess=steps)
            experiment.add(replace(job, split=split, dataset=dataset), 10 + fold)
    text = table(experiment.folder)
    assert "- Test: 5-fold cross-validation (seed 7)." in text
    chosen = "Parameter selection: 4-fold cross-validation on each training part, 2 times"
    assert f"- {chosen}." in text
    grids = text.split("**Parameter grids**")[1]
    assert cells_of(lines_of(grids, "SVM")[0]) == ["SVM", "C", "1 to 100 (3 values)"]
    assert cells_of(lines_of(grids, "RMM")[0]) == ["RMM", "all", "as SVM"]
    assert "- Preprocessing, fitted to each training part: impute median, standard, pca 80." in text
    folds = "It underestimates the uncertainty, as folds share training rows."
    assert f"standard error over 5 folds. {folds}" in text


def test_predefined_splits_share_training_rows(results) -> None:
    experiment = results.experiment("own")
    for fold in (1, 2):
        split = SplitRef("predefined", (), fold - 1, 1, 0)
        experiment.add(replace(experiment.job("pima", "svm"), split=split), 10 + fold)
    text = table(experiment.folder)
    assert "It underestimates the uncertainty, as splits share training rows." in text


def test_a_table_says_that_groups_stay_together(results) -> None:
    experiment = results.experiment("own")
    job = experiment.job("pima", "svm", rule="holdout")
    experiment.add(replace(job, dataset=replace(job.dataset, options=(("groups", "patient"),))))
    assert ", all rows of a patient in one part." in table(experiment.folder)


def test_a_table_says_how_many_rows_of_each_class_are_trained_on(results) -> None:
    experiment = results.experiment("own")
    job = experiment.job("pima", "svm", rule="holdout")
    experiment.add(replace(job, split=replace(job.split, max_train=("per_class", 15))))
    assert ", 15 training rows per class." in table(experiment.folder)


def test_a_column_is_headed_by_its_label(results) -> None:
    experiment = results.experiment("own", labels={"m4_wide": "M4, wide"})
    experiment.add(experiment.job("pima", "m4", variant="m4_wide"))
    head = next(line for line in table(experiment.folder).splitlines() if "data set" in line)
    assert cells_of(head)[2:] == ["M4, wide"]


def test_many_machines_that_reuse_one_search_are_not_listed(results) -> None:
    machines = ["svm", "rmm", "mmrm", "m4", "mpm"]
    for last in (3, 5):
        name = f"{last}_machines"
        uses = dict.fromkeys(machines[1:last], "svm")
        used = {"datasets": ["pima"], "machines": machines[:last], "uses": uses}
        experiment = results.experiment(name, **used)
        for machine in machines[:last]:
            experiment.add(experiment.job("pima", machine), 15, 77)
        users = "RMM, MMRM" if last == 3 else "all other machines"
        text = f"; the search of SVM, whose time is in its column, also serves {users}**"
        assert text in table(experiment.folder, layout="generic")


def test_every_citation_has_its_footnote_and_every_footnote_a_citation(table1) -> None:
    text = table(table1.folder)
    cited = set(re.findall(r"\[(\d)\]", "\n".join(lines_of(text, ""))))
    assert cited == set(re.findall(r"^- \[(\d)\] ", text, flags=re.MULTILINE))
    assert cited


def test_a_text_that_names_the_data_is_not_named_again(results) -> None:
    experiment = results.experiment("own")
    experiment.add(experiment.job("isolet", "svm"), deviations=["isolet: a part of the rows"])
    assert "- [1] isolet: a part of the rows" in table(experiment.folder)


def test_warnings_on_a_users_file_are_cited(results) -> None:
    experiment = results.experiment("own")
    experiment.add(experiment.job("mine", "svm"), warnings=["column 2 is constant"])
    assert "- [1] mine: column 2 is constant" in table(experiment.folder)


def test_the_computer_is_named_once_with_all_its_thread_settings(results) -> None:
    experiment = results.experiment("own")
    computer = {"mmbench": "0.1.0", "python": "3.11", "cpu": "a processor"}
    for machine, threads in (("svm", 2), ("rmm", 1), ("mmrm", 1)):
        environment = {**computer, "threads": {"pairs": threads}}
        experiment.add(experiment.job("pima", machine), environment=environment)
    text = table(experiment.folder)
    assert text.count("a processor") == 1
    assert "trained at a time: 1 or 2." in text


def test_no_layout_loses_a_kernel_or_degree(results) -> None:
    experiment = results.experiment("own")
    experiment.add(experiment.job("pima", "svm"))
    for degree in (2, 3):
        params = (("degree", degree),)
        experiment.add(experiment.job("pima", "svm", kernel="poly", params=params))
    for layout in LAYOUTS.keys() - {"fsvm_table1"}:  # which has no results, but sizes of data
        text = table(experiment.folder, layout=layout)
        assert re.search(r"[Pp]oly\D+2", text), layout
        assert re.search(r"[Pp]oly\D+3", text), layout


def test_layouts_are_listed_with_what_they_show() -> None:
    rows = dict(layout_rows())
    assert list(rows) == list(LAYOUTS)
    assert all(text.endswith(".") for text in rows.values())


# -- formats -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_markdown_columns_are_aligned(table1, layout: str) -> None:
    text = table(table1.folder, layout=layout)
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        lines = block.splitlines()
        assert len({len(line) for line in lines}) == 1
        assert re.fullmatch(r"(\| -+:? )+\|", lines[1])
        bars = {tuple(k for k, char in enumerate(line) if char == "|") for line in lines}
        assert len(bars) == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_latex_is_balanced_and_every_row_has_all_cells(table1, layout: str) -> None:
    text = table(table1.folder, fmt="latex", layout=layout)
    plain = text.replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")
    opened = re.findall(r"\\begin{(\w+)}", text)
    assert sorted(opened) == sorted(re.findall(r"\\end{(\w+)}", text))
    for sides, body in re.findall(r"\\begin{tabular}{(\w+)}(.*?)\\end{tabular}", text, re.DOTALL):
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        rows = [row for row in rows if r"\multicolumn" not in row]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(sides)}
    assert re.search(r"(?<!\\)[_#]", text) is None
    assert text.isascii()


#: Text that LaTeX would read as commands.
HOSTILE = r"50% of {x} & y_1 \input{n} $^~#<>[é] ` ' -- ?` β"


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="there is no pdflatex")
def test_latex_compiles_and_fits_the_page_of_an_article(usps, table1, results, tmp_path) -> None:
    many = results.experiment("many")
    for k in range(60):
        many.add(many.job(f"a rather long name of a data set, number {k}", "svm"))
    wide = results.experiment("wide", [*map(str, range(90))], [f"a_machine_{k}" for k in range(20)])
    wide.fail(wide.job("7", "svm"), reason=HOSTILE)
    packages = r"\usepackage{amssymb,booktabs,graphicx}"
    head = rf"\documentclass{{article}}{packages}\begin{{document}}"
    text = table(results.folder, "latex", caption=HOSTILE)
    assert packages in text
    labels = re.findall(r"\\label{(.*)}", text)
    assert len(labels) == len(set(labels)) and "tab:wide.2" in labels
    tables = table(Path("reference/mamc_table2"), "latex")
    (tmp_path / "t.tex").write_text(f"{head}\n{text}{tables}\\end{{document}}\n")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Float too large" not in done.stdout
    too_wide = re.findall(r"Overfull .hbox .([0-9.]+)pt too wide", done.stdout)
    assert max(map(float, too_wide), default=0) < 12, done.stdout


def test_latex_groups_span_the_columns_of_the_paper(usps) -> None:
    text = table(usps.folder, fmt="latex")
    assert r"\multicolumn{4}{c}{Data info}" in text
    assert r"\cmidrule(lr){2-5} \cmidrule(lr){6-8}" in text


def test_latex_prints_hostile_text_as_it_stands(results) -> None:
    experiment = results.experiment("own")
    experiment.fail(experiment.job("a_b", "svm"), reason=r"50% of {x} & y_1 \n $^~#<>")
    text = table(experiment.folder, fmt="latex")
    assert r"50\% of \{x\} \& y\_1 \textbackslash{}n \$\textasciicircum{}$\sim$\#" in text


def test_a_bar_in_a_reason_does_not_break_a_markdown_table(results) -> None:
    experiment = results.experiment("own")
    experiment.add(experiment.job("a|b", "svm"))
    (line,) = lines_of(table(experiment.folder), r"a\|b")[:1]
    assert len(re.findall(r"(?<!\\)\|", line)) == 4


def test_names_make_no_links_pictures_or_code_in_markdown(results) -> None:
    experiment = results.experiment("own")
    name = "![x](http://a)`b` _c_ __d__ ~~e~~ <i>&lt;\\ a_b\x1b"
    experiment.add(experiment.job(name, "svm"))
    experiment.fail(experiment.job("pima", "svm"), reason="> [y]: http://a\x07")
    text = table(experiment.folder)
    shown = r"![x\](http://a)\`b\` \_c\_ \_\_d\_\_ \~\~e\~\~ \<i>\&lt;\\ a_b\\x1b"
    assert shown in text
    assert r"[y]: http://a\\x07" in text
    experiment.fail(experiment.job("[z]: http://b", "svm"))
    assert r"| \[z]: http://b" in table(experiment.folder)
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    html = markdown.render(text)
    assert not re.search(r"<(a|img|code|em|s|i|blockquote)\b", html)
    assert r"__d__ ~~e~~ &lt;i&gt;&amp;lt;\ a_b\x1b" in html


# -- results folders ---------------------------------------------------------------------------


def test_a_results_folder_shows_all_experiments_each_under_its_own_layout(usps, table1) -> None:
    text = table(usps.folder.parent)
    assert re.findall(r"^## (\w+):", text, flags=re.MULTILINE) == ["mmrm_table1", "usps_rbf"]


def test_reference_tables_are_no_experiment(usps) -> None:
    reference = usps.folder.parent / "reference"
    reference.mkdir()
    (reference / "experiment.yaml").write_text("name: reference\n")
    assert "reference" not in table(usps.folder.parent)


def test_the_table_is_written_to_a_file_as_well(usps, tmp_path) -> None:
    text = table(usps.folder, output=tmp_path / "table.md")
    assert (tmp_path / "table.md").read_text() == text


def test_a_damaged_record_is_left_out_left_alone_and_told(usps) -> None:
    damaged = usps.store.path_of(usps.store.keys()[0])
    damaged.write_text("{")
    text = table(usps.folder)
    assert f"Damaged records left out: 1, such as {damaged.name}" in text
    assert "not run" in text
    assert damaged.read_text() == "{"


def test_a_bad_experiment_does_not_empty_the_others(usps, results) -> None:
    results.experiment("empty", datasets=["pima"], machines=["svm"])
    bad = results.experiment("bad")
    bad.add(bad.job("pima", "svm"))
    bad.store.path_of(bad.store.keys()[0]).write_text("[" * 100_000)
    lines: list[str] = []
    assert table(results.folder, say=lines.append) == table(usps.folder)
    assert ["bad: no intact record" in lines[0], "empty: no records yet" in lines[1]] == [True] * 2


@pytest.mark.parametrize("kind", ["folder", "loop"])
def test_a_folder_or_a_loop_in_place_of_a_record_is_left_out(usps, kind: str) -> None:
    path = usps.store.path_of(usps.store.keys()[0])
    path.unlink()
    path.mkdir() if kind == "folder" else path.symlink_to(path)
    assert "Damaged records left out: 1" in table(usps.folder)
    with usps.store.locked():
        assert usps.store.recover(usps.store.keys(), [].append).keys() < set(usps.store.keys()) | {
            path.stem
        }
    assert not path.is_symlink() and not path.exists()


def test_several_results_folders_are_shown_together(usps, table1) -> None:
    text = tables.table([usps.folder, table1.folder])
    assert text == f"{table(usps.folder)}\n{table(table1.folder)}"


def test_a_layout_that_cannot_show_one_experiment_shows_the_others(usps, results) -> None:
    sized = results.experiment("sized")
    sized.add(
        replace(job := sized.job("pima", "svm"), split=replace(job.split, max_train=("nested", 9)))
    )
    lines: list[str] = []
    text = table(results.folder, layout="mmrm_table1", say=lines.append)
    assert "## usps_rbf" in text and "## sized" not in text
    assert "cannot show several training sizes" in lines[0]


@pytest.mark.parametrize(("name", "first"), [("t.csv", "experiment,"), ("t.tex", "% needs")])
def test_the_suffix_of_the_output_says_the_format(usps, tmp_path, name: str, first: str) -> None:
    assert table(usps.folder, output=tmp_path / name).startswith(first)
    assert (tmp_path / name).read_text().startswith(first)


def test_a_suffix_of_no_format_is_refused_but_where_the_format_is_said(usps, tmp_path) -> None:
    with pytest.raises(UserError, match=r"t\.pdf: the name must end in \.md, \.csv, \.tex; or"):
        table(usps.folder, output=tmp_path / "t.pdf")
    assert table(usps.folder, "csv", output=tmp_path / "t.txt").startswith("experiment,")


# -- reference tables ----------------------------------------------------------------------------


@pytest.fixture
def reference(usps):
    """A results folder of a fresh clone: it holds reference tables alone."""
    folder = usps.folder.parent / "reference" / "usps_rbf"
    folder.parent.mkdir(parents=True)
    tables.export(usps.folder, output=folder.parent)
    shutil.move(usps.folder, usps.folder.parent / "reference" / "records")
    (usps.folder.parent / "reference" / "records" / "experiment.yaml").unlink()
    return usps.folder.parent


def test_on_a_fresh_clone_the_reference_tables_are_shown(reference) -> None:
    text = table(reference)
    assert text == (reference / "reference" / "usps_rbf" / "table.md").read_text()
    assert table(reference / "reference") == table(reference / "reference" / "usps_rbf") == text


def test_the_reference_tables_that_come_with_it_are_found_by_name(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = resources.REFERENCE / "usps_rbf" / "table.md"
    assert table(Path("reference/usps_rbf")) == shown.read_text()
    with pytest.raises(UserError, match=r"reference/none: no such folder"):
        table(Path("reference/none"))


def test_a_reference_table_has_every_format_and_layout(reference) -> None:
    folder = reference / "reference" / "usps_rbf"
    assert table(folder, "csv") == (folder / "table.csv").read_text()
    assert r"92 / 89 $\sim$" in table(folder, "latex")
    assert "95.4 / " not in table(folder, layout="generic")


def test_the_csv_of_a_reference_table_keeps_versions_and_fingerprints() -> None:
    folder = resources.REFERENCE / "geometry"
    stored, shown = (folder / "table.csv").read_text(), table(folder, "csv")
    rows = [list(csv.DictReader(text.splitlines())) for text in (stored, shown)]
    rows = [[row for row in part if row["dataset"]] for part in rows]
    codes = [[(row["version"], row["fingerprint"]) for row in part] for part in rows]
    assert codes[0] == codes[1]
    assert all(all(code) for code in codes[1])


def test_a_file_that_is_no_table_is_named(reference) -> None:
    path = reference / "reference" / "usps_rbf" / "table.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match=r"table\.csv: not a table of mmbench"):
        table(reference)


@pytest.fixture
def quickstart(tmp_path) -> Path:
    """A copy of a reference table with single splits, but without the stored Markdown text."""
    folder = tmp_path / "quickstart"
    shutil.copytree(resources.REFERENCE / "quickstart", folder)
    (folder / "table.md").unlink()
    return folder


@pytest.mark.parametrize("show", [table, lambda folder: tables.export([folder])])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_split_table_is_named(quickstart, show, share) -> None:
    path = quickstart / "splits.csv.gz"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(UserError, match=r"splits\.csv\.gz: not a split table of mmbench: "):
        show(quickstart)


def test_a_split_table_without_repeats_is_named(quickstart) -> None:
    path = quickstart / "splits.csv.gz"
    frame = pd.read_csv(path)
    frame.assign(repeat="").to_csv(path, index=False)
    with pytest.raises(UserError, match=r"splits\.csv\.gz: not a split table of mmbench: "):
        table(quickstart)


@pytest.mark.parametrize("step", [1, 2])
def test_a_table_without_numbers_of_splits_states_the_known_ones(quickstart, step) -> None:
    frame = pd.read_csv(quickstart / "table.csv")
    frame.loc[::step, "n"] = None
    frame.to_csv(quickstart / "table.csv", index=False, float_format="%.10g")
    text = table(quickstart)
    assert "NA" not in text and ("standard error over 5 folds" in text) == (step == 2)
    assert "splits are missing" not in text and "- Bold: " in text
    assert "Missing splits" not in table(quickstart, layout="comparison")


def test_a_comparison_without_numbers_of_splits_names_its_test(tmp_path) -> None:
    folder = tmp_path / "usps_rbf"
    shutil.copytree(resources.REFERENCE / "usps_rbf", folder)
    for name in ("rows.csv.gz", "pairs.csv.gz"):
        (folder / name).unlink()
    text = table(folder, layout="comparison")
    pd.read_csv(folder / "table.csv").assign(n="").to_csv(folder / "table.csv", index=False)
    assert table(folder, layout="comparison") == text
    assert "no test is possible" in text


def test_a_split_table_with_a_missing_number_of_rows_has_the_other_numbers(quickstart) -> None:
    frame = pd.read_csv(quickstart / "splits.csv.gz").astype({"n_train": float})
    frame.loc[0, ["n_train", "accuracy_pct"]] = None
    frame.to_csv(quickstart / "splits.csv.gz", index=False)
    text = table(quickstart, layout="mamc_table2").partition("The data sets")[2]
    assert cells_of(lines_of(text, "wdbc")[0])[2] == "455 to 456"


@pytest.mark.parametrize("column", ["se", "n", "sd"])
def test_a_table_without_standard_errors_shows_means(quickstart, column) -> None:
    path = quickstart / "table.csv"
    mean = cells_of(lines_of(table(quickstart, bold=False), "wdbc")[0])[2].split(" ")[0]
    pd.read_csv(path).assign(**{column: ""}).to_csv(path, index=False)
    shown = cells_of(lines_of(table(quickstart, bold=False), "wdbc")[0])[2]
    assert shown.startswith(mean) and ("(" in shown) == (column == "n")


# -- cleaning ------------------------------------------------------------------------------------


def test_clean_lists_and_then_removes_what_no_setting_uses(usps) -> None:
    before = table(usps.folder)
    usps.add_unplanned(usps.job("usps", "svm", grid=(("C", (3.0,)),)), arrays={"a": np.ones(3)})
    quarantine = usps.folder / "records" / "quarantine"
    (quarantine / "lost.json").mkdir(parents=True)
    (line,) = tables.clean([usps.folder.parent])
    assert ": 3 files" in line and line.endswith("would be removed")
    assert "left out" in table(usps.folder)
    assert tables.clean([usps.folder], remove=True)[0].endswith("removed")
    assert table(usps.folder) == before
    assert list(quarantine.iterdir()) == []


def test_without_a_plan_nothing_is_cleaned(usps) -> None:
    (usps.folder / "plan.json").write_text("{")
    assert "no intact plan" in tables.clean([usps.folder], remove=True)[0]
    assert len(usps.store.keys()) == 3


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda path: None, "no such folder"),
        (lambda path: path.write_text(""), "is a file"),
        (lambda path: path.mkdir(), "not a results folder"),
    ],
)
def test_what_is_no_results_folder_is_refused_in_one_line(tmp_path, prepare, message) -> None:
    prepare(tmp_path / "there")
    with pytest.raises(UserError, match=message) as caught:
        table(tmp_path / "there")
    assert "\n" not in str(caught.value)


def test_an_experiment_without_records_is_refused(results) -> None:
    experiment = results.experiment("own", datasets=["pima"], machines=["svm"])
    with pytest.raises(UserError, match="no records yet"):
        table(experiment.folder)


def test_an_experiment_of_damaged_records_alone_is_refused(usps) -> None:
    for key in usps.store.keys():  # noqa: SIM118 - a store is no mapping
        usps.store.path_of(key).write_text("{}")
    with pytest.raises(UserError, match="no intact record; the first of 3 damaged"):
        table(usps.folder)


def test_a_broken_configuration_does_not_matter_where_there_is_a_plan(usps) -> None:
    before = table(usps.folder)
    (usps.folder / "experiment.yaml").write_text("a: [")
    assert table(usps.folder) == before


@pytest.mark.parametrize(
    ("options", "nearest"),
    [({"layout": "mmrm_tabel2"}, "mmrm_table2"), ({"fmt": "markdwon"}, "markdown")],
)
def test_a_misspelt_name_is_answered_with_the_nearest(usps, options, nearest: str) -> None:
    with pytest.raises(UserError, match=f"did you mean '{nearest}'"):
        table(usps.folder, **options)


def test_an_output_that_cannot_be_written_is_refused(usps, tmp_path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        table(usps.folder, output=tmp_path / "no" / "table.md")


def test_a_folder_as_output_is_refused_and_nothing_is_left(usps, tmp_path) -> None:
    (tmp_path / "out").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for output in (tmp_path / "out", Path()):
        with pytest.raises(UserError, match=r"cannot write the table: .*(directory|folder)"):
            table(usps.folder, output=output)
    assert sorted(tmp_path.rglob("*")) == before


def test_seconds_of_a_calibration_are_a_stage_of_the_machines_that_have_one(results) -> None:
    experiment = results.experiment("own")
    seconds = {"selection": 10.0, "training": 1.5, "test": 0.25}
    experiment.add(experiment.job("pima", "svm"), cpu_seconds=seconds | {"calibration": 4.0})
    experiment.add(experiment.job("pima", "rmm"), cpu_seconds=seconds)
    text = table(experiment.folder)
    assert "CPU seconds per split: selection + training + test + calibration (if any)" in text
    assert "10.0 + 1.50 + 0.25 + 4.00" in text and "10.0 + 1.50 + 0.25 " in text
    rows = table(experiment.folder, fmt="csv").splitlines()
    assert sum("seconds_calibration" in row for row in rows) == 1
    assert load(experiment.folder).seconds_calibration.tolist()[0] == 4.0
