"""What stands behind ``mmbench data``."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.data_server import files_in

from mmbench.commands.data import fetch, info, summaries, verify
from mmbench.datasets.card import load_card
from mmbench.datasets.load import load_dataset
from mmbench.errors import UserError


def test_fetch_copies_from_the_mirror_and_then_needs_it_no_more(mirror: Path, store: Path):
    outcomes = list(fetch(["sonar", "ida_heart", "digits"], store, mirror))
    assert [o.ok for o in outcomes] == [True, True, True]
    assert files_in(store) == ["ida/heart.npz", "sonar/sonar.all-data.gz"]
    assert "deviation: ida_heart: splits 1 to 10" in outcomes[1].message
    assert outcomes[2].message == "built in"
    data = load_dataset("sonar", store=store, allow_network=False)
    assert data.X.shape == (208, 60)


def test_one_set_that_cannot_be_had_does_not_stop_the_others(mirror: Path, store: Path, tmp_path):
    part = tmp_path / "mirror"
    (part / "sonar").mkdir(parents=True)
    (part / "sonar" / "sonar.all-data.gz").write_bytes(
        (mirror / "sonar" / "sonar.all-data.gz").read_bytes()
    )
    outcomes = list(fetch(["pima", "sonar"], store, part, allow_network=False))
    assert [o.ok for o in outcomes] == [False, True]
    assert "pima/pima-indians-diabetes.data.gz" in outcomes[0].message


def test_an_unknown_name_is_refused_before_anything_is_fetched(mirror: Path, store: Path):
    for function in (fetch, verify):
        with pytest.raises(UserError, match="did you mean 'sonar'"):
            function(["pima", "sonnar"], store, mirror)
    assert not store.exists()


def test_verify_finds_damage_and_deletes_nothing(mirror: Path, store: Path):
    list(fetch(["sonar"], store, mirror))
    assert next(verify(["sonar"], store)).ok
    place = store / "sonar" / "sonar.all-data.gz"
    place.write_bytes(place.read_bytes()[:-1] + b"x")
    (outcome,) = verify(["sonar"], store)
    assert not outcome.ok
    assert "wrong SHA-256" in outcome.message
    assert place.exists()


def test_verify_compares_all_values_with_the_card(mirror: Path, store: Path, monkeypatch):
    """The files and their sizes are those of the card; only a value differs."""
    list(fetch(["sonar"], store, mirror))
    card = load_card("sonar")
    expect = card.expect.model_copy(update={"content": "0" * 64})
    other = card.model_copy(update={"expect": expect})
    monkeypatch.setattr("mmbench.commands.data.load_card", lambda _: other)
    (outcome,) = verify(["sonar"], store)
    assert not outcome.ok
    assert "other values" in outcome.message


def test_verify_of_everything_speaks_only_of_what_is_here(store: Path):
    names = {outcome.name for outcome in verify(None, store)}
    assert "digits" in names
    assert "usps" not in names
    (outcome,) = verify(["usps"], store)
    assert not outcome.ok
    assert "fetch them first" in outcome.message


def test_the_list_says_where_each_set_lies(mirror: Path, store: Path):
    list(fetch(["sonar"], store, mirror))
    where = {row[0]: row[-1] for row in summaries(store, mirror)}
    assert where["sonar"] == "store"
    assert where["usps"] == "mirror"
    assert where["digits"] == where["toy_1"] == "built in"
    assert {row[0]: row[-1] for row in summaries(store)}["usps"] == "-"


def test_verify_names_the_deviations_of_what_is_here(mirror: Path, store: Path):
    (outcome,) = verify(["isolet"], store, mirror)
    assert outcome.ok
    assert "agrees with its card (deviation: isolet: only 1560 of the 6238" in outcome.message


def test_each_outcome_is_told_before_the_next_set_is_asked_for(server, store: Path, mirror: Path):
    """A silent server must not keep back what is done."""
    outcomes = fetch(["wine", "pima"], store, server.url)
    assert next(outcomes).name == "wine"
    assert server.asked == []


def test_info_tells_shape_sources_licence_and_deviations(store: Path, mirror: Path):
    text = info("isolet", store, mirror)
    assert "classes:          26\n" in text
    assert "here:             files, 3119 x 617, mirror (deviation: isolet: only 1560" in text
    assert "here:             no" in info("isolet", store)
    assert "7797 x 617" in text
    assert "openml-300" in text
    assert "isolet1+2+3+4.data.Z" in text
    assert "only 1560 of the 6238 training rows" in text
    assert "CC BY 4.0" in text
    with pytest.raises(UserError, match="unknown data set"):
        info("isolett", store)


def test_a_store_that_cannot_be_written_is_one_line(mirror: Path, tmp_path: Path):
    (tmp_path / "file").write_text("no folder")
    (outcome,) = fetch(["sonar"], tmp_path / "file", mirror)
    assert not outcome.ok
    assert "cannot store data" in outcome.message
