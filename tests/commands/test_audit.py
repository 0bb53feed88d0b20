"""`mmbench audit`: tables in, a report and an exit code out."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from mmbench import audit
from mmbench.cli.app import app
from mmbench.errors import UserError

HEAD = "dataset,machine,value,n_test,n_splits\n"
TABLES = {
    "a sound table": (HEAD + "iris,svm,96.0,50,1\niris,rmm,98.0,50,1\n", 0, "no findings"),
    "a wrong number": (HEAD + "iris,svm,97.3,50,1\n", 1, "97.3 would be 48.65 of 50 test rows"),
    "twice": (HEAD + "iris,svm,96,50,1\niris,SVM,98,50,1\n", 1, "printed 2 times, as 96, 98"),
    "without rows": (HEAD + "vote,mpm,94.8,,\nvote,mempm,94.9,,\n", 0, "no findings"),
    "no number": (HEAD + "iris,svm,97.3 %,50,1\n", 2, "row 1: value '97.3 %' is not a number"),
    "no column": ("dataset,method,value\niris,svm,97\n", 2, "no column machine"),
    "no split": (HEAD + "iris,svm,96,50,0\n", 2, "n_splits '0' is not a number of at least 1"),
    "a head alone": (HEAD, 2, "has no rows"),
    "spaces after commas": (HEAD.replace(",", ", ") + "iris, svm, 96, 50, 1\n", 0, "no findings"),
    "empty": ("", 2, "cannot be read as CSV"),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_exit_code_says_whether_something_was_found(name, tmp_path):
    text, code, words = TABLES[name]
    path = tmp_path / "table.csv"
    path.write_text(text)
    result = CliRunner().invoke(app, ["audit", str(path)])
    assert result.exit_code == code
    assert words in result.output


def test_the_report_is_written_as_markdown_or_html(tmp_path):
    frame = pd.DataFrame({"dataset": ["<b>"], "machine": ["svm"], "value": ["107.3"]})
    for name, escaped in (("a.html", "&lt;b&gt;"), ("a.md", r"\<b>")):
        found = audit(frame, output=tmp_path / name)
        text = (tmp_path / name).read_text()
        assert escaped in text
        assert "107.3 is not between 0 and 100" in text
    assert found.exit_code == 1


def test_a_relation_between_machines_can_be_added():
    rows = [("usps", machine, errors, "2007", "1") for machine, errors in (("a", 90), ("b", 190))]
    frame = pd.DataFrame(rows, columns=HEAD.strip().split(",")).assign(metric="errors_count")
    assert audit(frame).exit_code == 0
    assert list(audit(frame, contains={"b": ["a"]}).findings.check) == ["contained"]


def test_unknown_names_and_missing_tables_are_refused():
    for tables, words in ((("rmm_table",), "did you mean"), ((), "no table is given")):
        with pytest.raises(UserError, match=words):
            audit(*tables)


def test_scores_that_no_confusion_matrix_has_are_found(capfd):
    pytest.importorskip("mlscorecheck")
    # 80 of 100 positive rows and 190 of 200 negative rows are right
    scores = {"accuracy": 0.9, "sensitivity": 0.8, "specificity": 0.95, "precision": 0.889}
    scores |= {"balanced_accuracy": 0.875, "f1": 0.842, "mcc": 0.772}
    for wrong in (None, *scores):
        frame = pd.DataFrame({"metric": scores.keys(), "value": scores.values()}).astype(str)
        frame.loc[frame.metric == wrong, "value"] = "0.512"
        frame = frame.assign(dataset="x", machine="svm", n_test=300, n_splits=1)
        described = pd.DataFrame([{"metric": "n_positive", "value": "100", "dataset": "x"}])
        found = audit(pd.concat([frame, described])).findings.reason
        assert len(found) == (wrong is not None)
        assert found.str.contains("100 positive and 200 negative rows").all()
    assert not capfd.readouterr().err


def test_the_example_of_the_page_prints_what_the_page_shows(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    table = re.findall(r"(?:^    .+\n)+", page, re.M)[0]
    (tmp_path / "my.csv").write_text(textwrap.dedent(table))
    shown = re.findall(r"```text\n(.*?)```", page, re.S)[0]
    assert audit(tmp_path / "my.csv").markdown().startswith(shown)
