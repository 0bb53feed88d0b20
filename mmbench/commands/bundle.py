"""Write experiments as folders of frames, or as a bundle: one zip file for other people.

A bundle also has package versions, references as BibTeX, and a description as RO-Crate 1.2
(https://w3id.org/ro/crate/1.2). Equal results give equal bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import mimetypes
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import mmbench
from mmbench.commands.cite import entries_of
from mmbench.config.files import config_files, parse_yaml, read_text, yaml_text
from mmbench.errors import UserError, listed
from mmbench.jobs.disk import write_folder, write_output
from mmbench.jobs.store import CONFIG
from mmbench.machines import MACHINES, alias_of
from mmbench.results.folder import CSV, FACTS, PUBLISHED, SETTINGS, SPLITS, facts_text, frames_of
from mmbench.results.frames import Results
from mmbench.tables.build import draw_tables, laid_out
from mmbench.tables.render import csv_text

#: Name of the description of an RO-Crate, its context, and its specification.
CRATE = "ro-crate-metadata.json"
CONTEXT, SPECIFICATION = "https://w3id.org/ro/crate/1.2/context", "https://w3id.org/ro/crate/1.2"
#: Files beside the folders of experiments.
VERSIONS, REFERENCES, README = "requirements.txt", "CITATION.bib", "README.md"
#: Meaning of the files of a bundle.
MEANING = {
    SETTINGS: "configuration of the experiment",
    CSV: "means over splits beside published values, one row per cell and metric",
    SPLITS: "one row per job: settings, metrics, certificates, versions, hashes of data and split",
    "rows.csv.gz": "how often each row of a data set was classified correctly",
    "pairs.csv.gz": "comparisons of two machines, for tests",
    FACTS: "plan of the tables, sizes and deviations of the data, computers, code",
    PUBLISHED: "published values of the table that the experiment reproduces",
    "table.md": "the table as Markdown",
    "table.tex": "the table as LaTeX",
    VERSIONS: "versions of the packages, for pip",
    REFERENCES: "references of the machines and of mmbench",
    README: "commands that read the bundle",
}
#: Types of files without a registered type.
TYPES = {".gz": "application/gzip", ".yaml": "application/yaml", ".tex": "text/x-tex"}
TYPES |= {".md": "text/markdown", ".bib": "text/x-bibtex"}
#: Date of the files in a bundle: the earliest date of a zip file.
EARLIEST = "1980-01-01"

Files = dict[str, bytes]


def reference_files(results: Results) -> Files:
    """Return the files of a reference folder: frames, facts and printed tables."""
    laid = laid_out(results)
    printed = {"table.md": draw_tables([results]), "table.tex": draw_tables([results], "latex")}
    files = {name: text.encode() for name, text in {FACTS: facts_text(laid), **printed}.items()}
    for name, frame in frames_of(laid).items():
        content = csv_text(frame).encode()
        files[name] = gzip.compress(content, mtime=0) if name.endswith(".gz") else content
    return files


def write_folders(experiments: Sequence[Results], target: Path) -> str:
    """Write a reference folder per experiment into a folder."""
    for one in experiments:
        folder = target / one.name
        if (folder / CONFIG).exists():
            raise UserError(f"{folder}: holds records; give another folder with --output")
        write_folder(folder, reference_files(one))
    return f"{listed([one.name for one in experiments])}: written to {target}"


def write_bundle(experiments: Sequence[Results], target: Path) -> str:
    """Write experiments as a bundle."""
    import pandas as pd

    if target.suffix.lower() != ".zip":
        raise UserError(f"--bundle {target}: the name must end in .zip")
    names = Counter(one.name for one in experiments)
    if twice := [name for name, count in names.items() if count > 1]:
        raise UserError(f"--bundle {target}: two experiments have the name {twice[0]!r}")
    settings = {one.name: _settings(one) for one in experiments}
    files: Files = {}
    for one in experiments:
        own = {SETTINGS: yaml_text(settings[one.name]).encode(), **reference_files(one)}
        if published := laid_out(one).published:
            own[PUBLISHED] = csv_text(pd.DataFrame([*published])).encode()
        files |= {f"{one.name}/{name}": content for name, content in own.items()}
    files[VERSIONS] = _versions(experiments).encode()
    files[REFERENCES] = _references(experiments).encode()
    files[README] = _readme([*settings], target.name).encode()
    description = json.dumps(_crate(experiments, files), indent=1, ensure_ascii=False)
    files = {CRATE: f"{description}\n".encode(), **files}

    def write(file: IO[bytes]) -> None:
        with ZipFile(file, "w", ZIP_DEFLATED) as archive:
            for name, content in (dict.fromkeys(folders_of(settings), b"") | files).items():
                info = ZipInfo(name)  # by default with the date EARLIEST
                # a folder, or a regular file that everybody may read
                info.external_attr = (0o40755 << 16 | 0x10) if info.is_dir() else 0o100644 << 16
                archive.writestr(info, content, ZIP_DEFLATED)

    write_output(target, write)
    return f"{listed([*settings])}: written to {target}"


def _settings(results: Results) -> dict[str, Any]:
    """Return the portable configuration of results; without one, mmbench's of the same name."""
    from mmbench.config.bundled import portable  # imports libraries that tables do not need

    places = [results.folder / SETTINGS, results.folder / CONFIG]
    places += [path for name, path in config_files().items() if name == results.name]
    for path in places:
        content = parse_yaml(read_text(path), str(path)) if path.is_file() else None
        if isinstance(content, Mapping):
            return portable(content, path)
    raise UserError(f"{results.folder}: a bundle needs the configuration, which is not known")


def _commits(experiments: Iterable[Results]) -> list[str]:
    """Return the commits of the code that made the records; empty for reference folders."""
    commits = (r.code.get("commit") for one in experiments for r in one.records.values() if r.done)
    return sorted({str(commit) for commit in commits if commit})


def _versions(experiments: Iterable[Results]) -> str:
    """Return a requirements file: per package the most frequent version, others as comments."""
    found: dict[str, Counter[str]] = {}
    pythons = Counter[str]()
    for one in experiments:
        done = one.splits[one.splits.accuracy_pct.notna()]
        for python, version, libraries in zip(
            done.python, done.mmbench, done.libraries, strict=True
        ):
            pythons[python] += 1
            for name, number in {"mmbench": version, **(libraries or {})}.items():
                found.setdefault(name, Counter())[number] += 1
    lines = [f"# Python {version}" for version, _ in pythons.most_common() if version]
    lines += [f"# commit of mmbench: {commit}" for commit in _commits(experiments)]
    for name, versions in found.items():
        (first, _), *others = versions.most_common()
        more = f"  # also {', '.join(str(version) for version, _ in others)}" if others else ""
        lines += [f"{name}=={first}{more}"] if first else []
    return "".join(f"{line}\n" for line in lines)


def _references(experiments: Iterable[Results]) -> str:
    """Return the BibTeX entries of the machines and of mmbench."""
    used = dict.fromkeys(name for one in experiments for name in one.splits.estimator if name)
    names = {alias_of(name).machine for name in used} & {*MACHINES}
    entries = [*entries_of(sorted(names)), *entries_of(["mmbench"])]
    return "\n\n".join(entries).replace("VERSION", mmbench.__version__) + "\n"


def _readme(names: Sequence[str], bundle: str) -> str:
    return f"""# Results of {", ".join(names)}

    pip install -r {VERSIONS}
    mmbench table {bundle}
    mmbench run {bundle} --sample 20 --results again
    mmbench compare {bundle} again --part
"""


# -- RO-Crate --------------------------------------------------------------------------------------


def _crate(experiments: Sequence[Results], files: Files) -> dict[str, Any]:
    """Return the description of a bundle in JSON-LD."""
    dates = [date for one in experiments for date in one.splits.finished if date]
    names = [one.name for one in experiments]
    about = f"Results of mmbench: {', '.join(names)}"
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": about,
        "description": f"{about}; each folder is an experiment, and {README} states the commands",
        "datePublished": max(dates, default=EARLIEST)[:10],
        "license": _at("#licence"),
        "hasPart": [_at(part) for part in (*folders_of(names), VERSIONS, REFERENCES, README)],
        "mentions": _one_or_all([_at(f"#run-{name}") for name in names]),
    }
    licence = {
        "@id": "#licence",
        "@type": "CreativeWork",
        "name": "No licence is stated",
        "description": "Ask the people who ran the experiments. Published values are from papers.",
    }
    metadata = {"@id": CRATE, "@type": "CreativeWork", "about": _at("./")}
    graph = [metadata | {"conformsTo": _at(SPECIFICATION)}, root, licence]
    for one, folder in zip(experiments, folders_of(names), strict=True):
        own = [name for name in files if name.startswith(folder)]
        texts = {"name": one.name, "description": f"The experiment {one.name}"}
        graph.append({"@id": folder, "@type": "Dataset", **texts, "hasPart": [*map(_at, own)]})
        graph.append(_action(one, own))
    versions = sorted({v for one in experiments for v in one.splits.mmbench.dropna() if v})
    # RO-Crate requires an address of a SoftwareApplication, and mmbench has none
    program = {"@id": "#mmbench", "@type": "CreativeWork", "name": "mmbench"}
    program["version"] = ", ".join(versions) or mmbench.__version__
    if commits := _commits(experiments):
        program["identifier"] = _one_or_all([f"commit {commit}" for commit in commits])
    graph += [program, *(_file(name, content) for name, content in files.items())]
    return {"@context": CONTEXT, "@graph": graph}


def folders_of(names: Iterable[str]) -> list[str]:
    """Return the paths of the folders of experiments in a bundle."""
    return [f"{name}/" for name in names]


def _one_or_all(values: list[Any]) -> Any:
    """Return the only value of a list, or the list."""
    return values[0] if len(values) == 1 else values


def _action(results: Results, files: Iterable[str]) -> dict[str, Any]:
    """Return the description of the run of an experiment."""
    made = {
        "@id": f"#run-{results.name}",
        "@type": "CreateAction",
        "name": f"mmbench run {results.name}",
        "instrument": _at("#mmbench"),
        "object": _at(f"{results.name}/{SETTINGS}"),
        "result": [_at(name) for name in files if Path(name).name not in (SETTINGS, PUBLISHED)],
    }
    dates = [date for date in results.splits.finished if date]
    return made | ({"endTime": max(dates)} if dates else {})


def _file(name: str, content: bytes) -> dict[str, Any]:
    kind = TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0]
    return {
        "@id": name,
        "@type": "File",
        "name": name,
        "description": MEANING[Path(name).name],
        "encodingFormat": kind,
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _at(name: str) -> dict[str, str]:
    return {"@id": name}
