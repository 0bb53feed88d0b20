"""``mmbench cite``: every machine has a paper, every experiment those of its machines and data."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml
from helpers.serial_executor import SerialExecutor
from helpers.small_run import NO_DATA, make_jobs

from mmbench import __version__
from mmbench.commands.cite import cite, entries_of
from mmbench.jobs.planned import Plan
from mmbench.jobs.store import CONFIG, PLAN, RecordStore
from mmbench.machines import MACHINES, alias_of
from mmbench.running.runner import run

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_has_an_entry_that_bibtex_can_read(machine):
    for entry in entries_of([machine]):
        assert entry.count("{") == entry.count("}")
        assert {"author", "title", "year"} <= set(re.findall(r"^  (\w+) +=", entry, re.M))
    assert entries_of([machine])


def authors_and_year(entry: str) -> str:
    authors, year = (
        re.findall(rf"^  {name} += {{(.*)}},$", entry, re.M)[0] for name in ("author", "year")
    )
    names = [author.partition(",")[0] for author in authors.split(" and ")]
    return f"{' and '.join(names) if len(names) < 3 else f'{names[0]} et al.'} {year}"


@pytest.mark.parametrize("machine", MACHINES)
def test_the_page_names_the_papers_that_are_printed(machine):
    page = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    papers = ", ".join(map(authors_and_year, entries_of([machine])))
    assert f"\n| {alias_of(machine).label} | {papers} |" in page


def test_the_page_shows_what_is_printed():
    page = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    assert f"$ mmbench cite mmrm\n{cite('mmrm').partition('@software')[0]}" in page


def test_a_reference_table_is_cited_as_its_experiment():
    assert cite("reference/mmrm_table1") == cite("mmrm_table1")


def test_an_alias_cites_the_paper_of_its_machine_and_mmbench():
    text = cite("emamc")
    assert "Improving generalization abilities" in text
    assert "keywords" not in text
    assert f"version = {{{__version__}}}" in text


def test_mmbench_alone_is_cited_as_in_its_citation_file():
    file = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    year = file["date-released"].year
    for part in (file["title"], file["version"], file["authors"][0]["name"], str(year)):
        assert f"{{{part}}}" in cite()
    assert cite().startswith(f"@{file['type']}{{")


def test_an_experiment_that_comes_with_mmbench_is_cited_by_name():
    assert "huang2008maxi" in cite("m4_table1")


def test_an_experiment_cites_machines_data_and_other_packages(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "name: mine\ndatasets: [sonar]\nprotocol: {test: {kfold: 3}}\nmachines:\n  m4:\n"
        "  rf: {estimator: sklearn.ensemble.RandomForestClassifier}\n"
    )
    text = cite(str(tmp_path / "mine.yaml"))
    papers = ["huang2008maxi", "pedregosa2011scikit"]
    tests = ["nadeau2003inference", "demsar2006statistical"]
    assert re.findall(r"@\w+\{(\w+),", text) == [*papers, "data_sonar", *tests, "mmbench"]
    assert "title = {Data: sonar},\n  note  = {Gorman, R. P." in text


@pytest.mark.parametrize("damage", ["link", "changed"])
def test_a_results_folder_is_cited_without_its_configuration(damage, tmp_path):
    jobs = make_jobs(2)
    store = RecordStore.create(tmp_path / "small", "name: small\n", Plan("small").filled(jobs))
    assert run(jobs, store, SerialExecutor(), data=NO_DATA).exit_code == 0
    for name in (CONFIG, PLAN):
        (store.folder / name).unlink()
    evil = tmp_path / "evil.yaml"
    evil.write_text(
        "name: small\ndatasets: [iris]\nprotocol: {test: {kfold: 3}}\n"
        "machines: {rf: {estimator: this.s}}\n"
    )
    if damage == "link":
        (store.folder / CONFIG).symlink_to(evil)
    else:
        (store.folder / CONFIG).write_bytes(evil.read_bytes())
    text = cite(str(store.folder))
    assert "this" not in sys.modules
    assert set(re.findall(r"@\w+\{(\w+),", text)) >= {"mmbench", "demsar2006statistical"}
    assert all(entry in text for job in jobs for entry in entries_of([job.machine]))
    assert all(f"data_{job.dataset.name}," in text for job in jobs)


def test_signs_of_bibtex_in_names_of_data_are_escaped():
    assert "title = {Data: breast\\_wisconsin}" in cite("m4_table2")
