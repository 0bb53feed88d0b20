"""The command line: help without waiting, exit codes, one line for a mistake, listings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.cases import cases
from typer.core import TyperGroup
from typer.testing import CliRunner

from mmbench import __version__
from mmbench.cli.app import app
from mmbench.config.read import load_config
from mmbench.datasets.card_files import card_names
from mmbench.errors import UserError
from mmbench.machines import ALIASES, MACHINES
from mmbench.resources import CONFIGS
from mmbench.tables.figures import FIGURES
from mmbench.tables.layouts import LAYOUTS

HEAVY = ("sklearn", "scipy", "numpy", "pandas", "matplotlib", "numba", "highspy", "openml", "yaml")
COMMANDS = {"run", "table", "figure", "report", "export", "easy", "certify"}
COMMANDS |= {"data", "list", "check", "cite", "clean", "compare", "config", "audit", "merge"}


def run(*arguments: str, **options):
    return CliRunner().invoke(app, list(arguments), **options)


def first_words(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines()]


CALL = "from mmbench.cli.app import app\ntry: app({!r})\nexcept SystemExit: pass"
NO_SEARCH = ("sklearn", "scipy.stats", "numba", "mmbench.selection.search")
MACHINES_LISTED = """\
from mmbench.commands import listing
assert all(dict(listing.machine_rows()).values())"""
NO_LISTED = (*HEAVY[:-1], "mmbench.datasets.card", "mmbench.tables.layouts.papers")
LISTS = [["list", kind] for kind in ("datasets", "layouts", "figures", "configs")]
#: What is done in a new process, one after the other, and modules that it must not import.
LITTLE = [
    ([CALL.format(["--help"]), MACHINES_LISTED, CALL.format(["run", "nowhere"])], HEAVY),
    ([CALL.format(["table", name]) for name in ("nowhere", "reference/quickstart")], NO_SEARCH),
    ([*map(CALL.format, LISTS)], NO_LISTED),
]


@pytest.mark.parametrize(("calls", "heavy"), LITTLE, ids=["start", "tables", "lists"])
def test_little_is_imported_where_it_is_not_needed(calls: list[str], heavy: tuple[str, ...]):
    loaded = f"print('loaded:', [name for name in {heavy!r} if name in sys.modules])"
    code = "\n".join(["import sys", *(line for call in calls for line in (call, loaded))])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *printed, _ = done.stdout.split("loaded: []\n")
    assert len(printed) == len(calls), done.stdout
    assert all(text.count("\n") > 5 for text in printed) or "['list'" not in code


def test_help_names_every_command():
    result = run("--help")
    assert result.exit_code == 0
    named = first_words(result.stdout.partition("Commands:\n")[2])
    assert set(named) == COMMANDS


@pytest.mark.parametrize(
    "command", [(c,) for c in sorted(COMMANDS)] + [("data", "fetch"), ("list", "layouts")]
)
def test_every_command_has_help(command: tuple[str, ...]):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "...}" not in result.stdout  # typer adds these dots


@pytest.mark.parametrize(
    ("command", "offered"), [("table", True), ("export", True), ("compare", True), ("clean", False)]
)
def test_reference_tables_are_offered_to_what_reads_them(command: str, offered: bool):
    assert ("reference/NAME" in run(command, "--help").stdout) == offered


@pytest.mark.parametrize("command", [(), ("list",), ("data",), ("config",), ("check",)])
def test_descriptions_of_commands_are_whole_sentences(command: tuple[str, ...]):
    text = run(*command, "--help", env={"COLUMNS": "80"}).stdout
    lines = text.partition("Commands:\n")[2].splitlines()
    assert lines
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)
    assert max(map(len, lines)) <= 76  # a terminal of 80 columns shows no more; the runner does


def test_version():
    assert run("--version").stdout.split() == ["mmbench", __version__]


def test_listings_name_what_there_is():
    assert first_words(run("list", "machines").stdout) == list(MACHINES)
    assert first_words(run("list", "machines", "--aliases").stdout) == [*MACHINES, *ALIASES]
    assert first_words(run("list", "datasets").stdout) == card_names()
    assert first_words(run("list", "layouts").stdout) == list(LAYOUTS)
    assert first_words(run("list", "figures").stdout) == list(FIGURES)
    for kind in ("machines", "datasets", "layouts", "figures", "configs"):
        lines = run("list", kind).stdout.splitlines()
        assert all(len(line.split()) > 1 for line in lines), "each has a description"


def test_an_experiment_is_described_by_a_whole_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    texts = {
        "bare": "name: bare\n",
        "colon": "# Figure 2: growth\n# of time.\nname: colon\n",
        "two": "# Tables (Huang et al. 2008) over\n#   two lines. Then more.\nname: two\n",
    }
    for name, text in texts.items():
        (tmp_path / "configs" / f"{name}.yaml").write_text(text)
    lines = [line.split(maxsplit=1) for line in run("list", "configs").stdout.splitlines()]
    assert ["bare"] in lines and ["colon", "Figure 2"] in lines
    assert ["two", "Tables (Huang et al. 2008) over two lines"] in lines


def test_configs_are_listed_with_their_first_comment(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours = run("list", "configs").stdout.splitlines()
    assert len(ours) == len(list(CONFIGS.glob("*.yaml"))) > 20
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a_mine.yaml").write_text("# My data.\nname: mine\n")
    (tmp_path / "configs" / "quickstart.yaml").write_text("name: bare\n")
    here = run("list", "configs").stdout.splitlines()
    assert here[0].split() == ["a_mine", "My", "data"]
    assert "quickstart" in here
    assert len(here) == len(ours) + 1


@pytest.mark.parametrize("name", ["usps_rbf", "configs/usps_rbf.yaml", "usps_rbf.yaml"])
def test_experiments_are_found_and_shown_anywhere(name: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = run("config", "show", name).stdout
    line, rest = text.split("\n", 1)
    assert rest == (CONFIGS / "usps_rbf.yaml").read_text().split("\n", 1)[1]
    assert Path(line.partition("$schema=")[2]).is_file()
    (tmp_path / "usps_rbf.yaml").write_text("mine")
    assert run("config", "show", "usps_rbf.yaml").stdout == "mine"
    assert "did you mean 'usps_rbf'?" in run("config", "show", "uspsrbf").stderr


def test_a_copy_finds_the_source_of_its_parameters(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(run("config", "show", "rmm_table1_mnist").stdout)
    source = load_config(tmp_path / "mine.yaml").source
    assert source.name == "rmm_table1_mnist23"


def test_data_commands(tmp_path: Path):
    store = str(tmp_path / "store")
    assert first_words(run("data", "list", "--data", store).stdout)[1:] == card_names()
    assert first_words(run("data", "list", "--licence").stdout)[1:] == card_names()
    assert run("data", "info", "iris").stdout.startswith("iris: ")
    assert run("data", "verify", "iris", "--data", store).exit_code == 0


def test_data_that_are_not_here_are_one_line_each_and_exit_code_1(tmp_path: Path):
    result = run("data", "verify", "usps", "letter", "--data", str(tmp_path))
    assert result.exit_code == 1
    assert first_words(result.stderr) == ["usps:", "letter:"]


def test_environment_variables_set_mirror_and_store(tmp_path: Path, mirror: Path):
    places = {"MMBENCH_MIRROR": str(mirror), "MMBENCH_DATA": str(tmp_path / "store")}
    result = run("data", "fetch", "sonar", env=places)
    assert result.exit_code == 0, result.stderr
    assert list((tmp_path / "store").rglob("sonar*"))


MISTAKES = cases(__file__, "mistakes.yaml")


@pytest.mark.parametrize(("arguments", "word"), MISTAKES, ids=str)
def test_mistakes_are_one_line_and_exit_code_2(arguments, word, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("mmbench: ")
    assert word in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("other", "code", "words"),
    [
        ("mmrm_fig2", 0, "agrees: 4 "),
        ("usps_rbf", 1, "differs: 4 "),
        ("quickstart", 3, "nothing compared: 0 "),
    ],
)
def test_a_comparison_exits_with_its_outcome(other, code, words):
    result = run("compare", f"reference/{other}", "reference/mmrm_fig2")
    assert (result.exit_code, result.stderr) == (code, "")
    assert result.stdout.startswith(words)
    assert ("usps_rbf usps rbf rmm: missing\n" in result.stdout) == (code == 1)


@pytest.mark.parametrize(
    "arguments", [("run",), ("table",), ("rum", "x"), ("run", "--job", "2"), ("figure", "a")]
)
def test_wrong_usage_is_exit_code_2_without_a_traceback(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Error" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UserError("file: key:\n  wrong"), 2, "mmbench: file: key: wrong"),
        (KeyboardInterrupt(), 130, "mmbench: interrupted; finished jobs are stored"),
        (PermissionError(13, "Permission denied", "out.csv"), 2, "mmbench: out.csv: Permission"),
    ],
)
def test_what_commands_raise_becomes_a_line_and_an_exit_code(error, code, line, monkeypatch):
    def broken(*_args, **_options):
        raise error

    monkeypatch.setattr("mmbench.commands.data.info", broken)
    result = run("data", "info", "usps")
    assert result.exit_code == code
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1


def test_ctrl_c_while_the_command_line_is_read_has_its_word_too(monkeypatch):
    def interrupted(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(TyperGroup, "parse_args", interrupted)
    result = run("run", "usps")
    assert result.exit_code == 130
    assert result.stderr == "mmbench: interrupted; finished jobs are stored\n"


def test_an_error_of_ours_is_not_hidden(monkeypatch):
    def broken(*_args):
        raise ZeroDivisionError

    monkeypatch.setattr("mmbench.commands.data.info", broken)
    assert isinstance(run("data", "info", "usps").exception, ZeroDivisionError)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_full_disk_is_one_line(stream: str):
    arguments = ("list", "machines") if stream == "stdout" else ("config", "show", "x")
    code = f"from mmbench.cli import main; import sys; sys.argv[1:] = {arguments!r}; main()"
    with open("/dev/full", "w") as full:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
        done = subprocess.run([sys.executable, "-c", code], **pipes, text=True)
    assert done.returncode == 2
    if stream == "stdout":
        assert done.stderr == "mmbench: No space left on device\n"


def test_a_reader_that_goes_away_ends_in_silence():
    code = "from mmbench.cli import main; import sys; sys.argv[1:] = ['data', 'list']; main()"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", code], **pipes, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 1


@pytest.mark.parametrize(("word", "found"), [("quick", "quickstart"), ("my", "my.yaml")])
def test_the_shell_completes_experiments(word: str, found: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").touch()
    words = {"_MMBENCH_COMPLETE": "complete_bash", "COMP_WORDS": f"mmbench run {word}"}
    result = CliRunner().invoke(app, [], prog_name="mmbench", env={**words, "COMP_CWORD": "2"})
    assert result.stdout.split() == [found]


def test_the_shell_completes_absolute_paths(tmp_path: Path):
    (tmp_path / "my.yaml").touch()
    (tmp_path / "my.txt").touch()
    words = {"_MMBENCH_COMPLETE": "complete_bash", "COMP_WORDS": f"mmbench run {tmp_path}/m"}
    result = CliRunner().invoke(app, [], prog_name="mmbench", env={**words, "COMP_CWORD": "2"})
    assert result.stdout.split() == [str(tmp_path / "my.yaml")]
