"""The pages on extending mmbench, typed to the letter in a copy of the package."""

from __future__ import annotations

import multiprocessing
import os
import re
import runpy
import shutil
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"^```(?:\{code-block\} )?(?P<language>\w+)\n"
    r"(?::caption: (?P<name>\S+)\n\n)?(?P<text>.*?)^```$",
    re.M | re.S,
)
#: In the order of the index: later pages use records of the first.
PAGES = re.findall(
    r"^(\w+)$", (ROOT / "docs/extending/index.md").read_text(encoding="utf-8").split("```")[1], re.M
)


def add_lines(path: Path, diff: str) -> None:
    """Add the lines with a + below the one line before them, which the file must hold once."""
    above, *added = diff.splitlines()
    assert above[0] == " " and all(line[0] == "+" for line in added), diff
    text = path.read_text(encoding="utf-8")
    assert text.count(f"{above[1:]}\n") == 1, f"{path} has not one line {above[1:]!r}"
    new = "".join(f"{line[1:]}\n" for line in added)
    path.write_text(text.replace(f"{above[1:]}\n", f"{above[1:]}\n{new}"), encoding="utf-8")


#: Commands are forks of a process with the libraries, whose import takes longer than most commands.
FORKS = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
FORKS.set_forkserver_preload(["numba", "pandas", "sklearn.base"])


def _run(program: str, arguments: list[str], folder: Path) -> None:
    """Run a command in this process, on one core: each worker of a run imports for CPU seconds."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for name in {"MMBENCH_MIRROR", "MMBENCH_DATA", "MMBENCH_RESULTS"} & {*os.environ}:
        del os.environ[name]
    os.environ["PYTHONPATH"] = str(folder)
    os.chdir(folder)
    for stream in (1, 2):
        os.dup2(os.open(f"stream{stream}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    sys.path.insert(0, str(folder))
    sys.argv = arguments if program == "python" else [program, *arguments]
    name = arguments[0] if program == "python" else program
    (runpy.run_path if program == "python" else runpy.run_module)(name, run_name="__main__")


def run(command: str, folder: Path) -> str:
    """Run a command of a page in the folder and return what it prints."""
    program, *arguments = command.split()
    process = FORKS.Process(target=_run, args=(program, arguments, folder))
    process.start()
    process.join()
    errors, printed = (Path(folder, name).read_text() for name in ("stream2", "stream1"))
    assert process.exitcode == 0, f"{command}: {errors}"
    return errors + printed


def check_console(text: str, folder: Path) -> None:
    """Run the commands of a block; what is printed must match, ``...`` being anything."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        printed = run(command, folder)
        escaped = re.sub(r"([\[\]?*])", r"[\1]", expected.strip())
        pattern = re.sub(r"\n?\.\.\.\n?", "*", escaped)
        assert fnmatchcase(printed.strip(), pattern), f"{command} printed\n{printed}"


def check_page(page: str, folder: Path) -> None:
    """Write the files of a page, and run its commands."""
    text = (ROOT / "docs" / "extending" / f"{page}.md").read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert blocks
    for block in blocks:
        # underscores of names are escaped in Markdown
        name, code = block["name"] and block["name"].replace("\\", ""), block["text"]
        if block["language"] == "console":
            check_console(code, folder)
        elif block["language"] == "diff":
            add_lines(folder / name, code)
        else:
            assert name is not None, f"{page}: a block of {block['language']} without a file"
            (folder / name).write_text(code, encoding="utf-8")


def test_the_pages_work_to_the_letter(tmp_path):
    """In a copy of the package, compiled as it is here, to which the pages add."""
    unfinished = shutil.ignore_patterns("*.pyc.*", "*.tmp.*")  # what is being compiled just now
    shutil.copytree(ROOT / "mmbench", tmp_path / "mmbench", ignore=unfinished)
    for page in PAGES:
        check_page(page, tmp_path)
