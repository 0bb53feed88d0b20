"""Lines of errors: readable, whatever the input."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from mmbench.config.read import load_config
from mmbench.datasets.dataset import DatasetRef
from mmbench.datasets.load import load_dataset
from mmbench.errors import MAX_LINE, UserError, did_you_mean, extra, readable, visible
from mmbench.running.progress import progress_for

LONG = "x" * 200_000


@pytest.mark.parametrize(
    "text", [f"name: {LONG}\n{LONG}: 1\n", f"name: a\ndatasets: [{LONG}]\n", f"{LONG}: [1"]
)
def test_a_configuration_with_an_absurd_value_is_refused_in_a_readable_line(
    tmp_path: Path, text: str
):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        load_config(tmp_path / "c.yaml")
    assert len(str(error.value)) <= MAX_LINE + 10


def test_a_data_file_with_an_absurd_value_is_refused_in_a_readable_line(tmp_path: Path):
    path = tmp_path / "my.csv"
    path.write_text(f"a,kind\n1,x\n{LONG},y\n")
    with pytest.raises(UserError, match=r"data row 2, column 'a': 'xxx.*characters") as error:
        load_dataset(DatasetRef("my", str(path), "kind"), store=tmp_path)
    assert len(str(error.value)) <= MAX_LINE + 10


def test_messages_of_usual_length_stay_as_they_are():
    for text in ("unknown key 'C'; valid: grid", "a 'b' and " + "word " * 100 + "'c'"):
        assert readable(text) == text


def test_a_message_of_several_lines_becomes_one():
    assert str(UserError("cannot read (broken\n  data)\n")) == "cannot read (broken data)"


def test_no_message_moves_the_cursor_or_turns_the_direction_of_text():
    name = "a\x1b[2J\x07\x9b\u202eb\udc80\rc\td"
    assert str(UserError(f"unknown {name}")) == r"unknown a\x1b[2J\x07\x9b\u202eb\udc80 c" + "\td"
    assert visible(name + "\r\n") == r"a\x1b[2J\x07\x9b\u202eb\udc80\rc" + "\td\r\n"
    stream = io.StringIO()
    progress_for(1, stream).say(name)
    assert r"a\x1b[2J" in stream.getvalue()


def test_the_end_of_a_long_line_is_kept():
    line = readable("cannot " + "word " * 1000 + "; run it again")
    assert line.startswith("cannot word")
    assert line.endswith("; run it again")


def test_the_nearest_of_valid_names_is_found_for_a_name_of_any_length():
    assert did_you_mean("swm", ["svm", "rmm"]) == "; did you mean 'svm'?"
    assert did_you_mean("label", ["age", "bmi"]) == "; valid: age, bmi"
    assert did_you_mean(LONG, ["svm", "rmm"]) == "; valid: rmm, svm"


def test_a_missing_extra_is_named_with_the_command_that_adds_it():
    told = r"a report needs the package nothing_here: .*\[report\]"
    with pytest.raises(UserError, match=told), extra("report", "a report"):
        import nothing_here.at_all  # noqa: F401


def test_a_package_that_cannot_be_imported_is_described():
    """An ImportError from within a package often has no name."""
    told = r"a report needs a package that cannot be imported \(no BLAS\): .*\[report\]"
    with pytest.raises(UserError, match=told), extra("report", "a report"):
        raise ImportError("no BLAS")
