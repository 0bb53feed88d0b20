"""Parsers against the formats that servers send and the mirror does not hold."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from mmbench.datasets.card import Expected, load_card
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch import Places, find
from mmbench.datasets.fetch.locate import disagreement
from mmbench.datasets.parsers import PARSERS
from mmbench.datasets.parsers.images import describe
from mmbench.errors import UserError
from mmbench.reader.file_text import read_bytes, to_labels

#: What Unix's compress makes of `ROWS`.
Z_FILE = bytes.fromhex("1f9d903158c8601146c10c16345888318850a18280030b1e4cb870a24388041952d4e810")
ROWS = b"1,2,a\n3,4,b\n3,4,b\n" * 3


def test_a_z_file_is_unpacked(tmp_path: Path):
    path = tmp_path / "rows.data.Z"
    path.write_bytes(Z_FILE)
    assert read_bytes(path) == ROWS


def test_a_z_file_that_unfolds_is_left_at_the_limit(tmp_path: Path):
    """Code k of a run of zeros stands for k + 1 zeros: 291 bytes unfold to 32,896."""
    codes = [0, *range(257, 512)]
    groups = [codes[k : k + 8] for k in range(0, 256, 8)]
    packed = [
        sum(code << 9 * k for k, code in enumerate(group)).to_bytes(9, "little") for group in groups
    ]
    path = tmp_path / "zeros.Z"
    path.write_bytes(b"\x1f\x9d\x90" + b"".join(packed))
    assert read_bytes(path) == bytes(256 * 257 // 2)
    with pytest.raises(ValueError, match=r"zeros\.Z: unpacks to more than 1000 bytes"):
        read_bytes(path, 1000)


@pytest.mark.parametrize("data", [b"\x1f\x9d", b"\x1f\x9d\x88abc", Z_FILE[:3] + b"\xff\xff"])
def test_a_damaged_z_file_is_refused(tmp_path: Path, data: bytes):
    path = tmp_path / "rows.data.Z"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"rows\.data\.Z: damaged or cut short"):
        read_bytes(path)


def test_without_gzip_a_z_file_names_the_program(tmp_path: Path, monkeypatch):
    path = tmp_path / "rows.data.Z"
    path.write_bytes(Z_FILE)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"rows\.data\.Z: .* needs the program gzip"):
        read_bytes(path)


@pytest.mark.slow
def test_isolet_from_the_repository_is_the_full_set(mirror: Path, tmp_path: Path, server):
    """The training rows here are those of isolet1, repeated; the test rows are the real ones."""
    partial = np.load(mirror / "isolet" / "isolet_partial.npz")
    X = np.resize(partial["X_train"], (6238, 617))
    y = np.resize(partial["y_train"], 6238)
    card = load_card("isolet")
    paths = []
    for name, (values, labels) in {
        "train.data": (X, y),
        "test.data": (partial["X_test"], partial["y_test"]),
    }.items():
        rows = np.column_stack([np.round(values.astype(float), 4), labels])
        lines = "\n".join(
            ", ".join(f"{v:.4f}" for v in row[:-1]) + f", {row[-1]:.0f}." for row in rows
        )
        paths.append(server.serve(f"/{name}", gzip.compress(lines.encode(), 1)))
    source = card.sources[0].model_copy(update={"urls": paths})
    card = card.model_copy(update={"sources": [source]})
    found = find(card, Places(tmp_path))
    data = found.read()
    assert [len(rows) for rows in data.official] == [6238, 1559]
    assert found.source.deviations == []


@pytest.mark.slow
def test_usps_in_libsvms_format_is_the_same_data(mirror: Path, tmp_path: Path):
    card = load_card("usps")
    arrays = np.load(mirror / "usps" / "usps.npz")
    paths = []
    for part in ("train", "test"):
        path = tmp_path / part
        rows = zip(arrays[f"X_{part}"].tolist(), arrays[f"y_{part}"].tolist(), strict=True)
        path.write_text(
            "".join(
                f"{label + 1} " + " ".join(f"{j + 1}:{v:.3g}" for j, v in enumerate(row) if v)
                + "\n"
                for row, label in rows
            )
        )  # fmt: skip
        paths.append(path)
    source = next(s for s in card.sources if s.kind == "url")
    parser = source.parser or card.parser
    data = PARSERS[parser.name](paths, **parser.model_extra)
    assert data.content_hash() == card.expect.content


def test_the_full_raetsch_collection_is_read(mirror: Path, tmp_path: Path):
    """A file of the collection's form, with as many splits as the real one has."""
    pool = np.load(mirror / "ida" / "heart.npz")
    random = np.random.default_rng(0)
    order = np.array([random.permutation(270) + 1 for _ in range(100)])
    entry = {"x": pool["x"], "t": pool["t"][:, None].astype(float)}
    path = tmp_path / "benchmarks.mat"
    savemat(path, {"heart": {**entry, "train": order[:, :170], "test": order[:, 170:]}})
    card = load_card("ida_heart")
    data = PARSERS["ida_mat"]([path], key="heart")
    assert disagreement(data, card.expected(card.sources[0])) is None
    assert np.array_equal(data.predefined[99][1], order[99, 170:] - 1)
    with pytest.raises(ValueError, match="no structure 'banana'"):
        PARSERS["ida_mat"]([path], key="banana")
    path.write_bytes(b"no mat file" * 30)
    with pytest.raises(ValueError, match="no structure"):
        PARSERS["ida_mat"]([path], key="heart")


def test_mnist_from_openml_is_the_same_data(tmp_path: Path):
    """The parser of the card's OpenML source, on two images."""
    arff = "@relation m\n@attribute p1 real\n@attribute p2 real\n@attribute class {0,1}\n@data\n"
    path = tmp_path / "m.arff"
    path.write_text(arff + "0,255,1\n7,8,0\n")
    options = {**load_card("mnist").sources[1].parser.model_extra, "n_train": 1, "target": "class"}
    data = PARSERS["arff"]([path], **options)
    assert data.X.dtype == np.uint8
    assert data.X.tolist() == [[0, 255], [7, 8]]
    assert data.y.tolist() == [1, 0]


def test_openmls_names_of_values_become_the_cards(tmp_path: Path):
    """Vote as Weka and OpenML write it: 'n', 'y' and missing values."""
    path = tmp_path / "v.arff"
    path.write_text(
        "@relation v\n@attribute a {'n','y'}\n@attribute b {'n','y'}\n"
        "@attribute Class {'democrat','republican'}\n@data\n"
        "'n',?,'republican'\n'y','n','democrat'\n"
    )
    source = next(s for s in load_card("vote").sources if s.kind == "openml")
    data = PARSERS["arff"]([path], **source.parser.model_extra)
    assert data.X.tolist() == [[0, 0.5], [1, 0]]
    assert data.y.tolist() == ["republican", "democrat"]


@pytest.mark.parametrize(
    ("descriptor", "n_values"), [("pixels", 2914), ("hog", 864), ("lbp", 1416)]
)
def test_a_descriptor_is_of_one_image_alone_and_8_bit(descriptor: str, n_values: int):
    images = np.random.default_rng(0).integers(0, 256, (3, 62, 47), dtype=np.uint8)
    values = describe(images, descriptor)
    assert values.shape == (3, n_values)
    assert values.dtype == np.uint8
    assert np.array_equal(describe(images[1:2], descriptor)[0], values[1])


def test_patterns_of_an_image_of_one_grey_value_are_all_alike():
    """But at its edge, beyond which there is nothing to compare with: the cells leave it out."""
    (counts,) = describe(np.full((1, 32, 23), 7, dtype=np.uint8), "lbp")
    assert counts.reshape(6, 59).max(axis=1).tolist() == [100] * 6
    assert counts.sum() == 600


def test_an_unknown_descriptor_is_named_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'hog'"):
        describe(np.zeros((1, 62, 47), dtype=np.uint8), "hogs")


def test_labels_are_integers_only_if_all_are():
    assert to_labels(["1", " 2."]).dtype == np.int64
    assert to_labels(["1", "2.5"]).tolist() == ["1", "2.5"]
    assert to_labels(["1", "x"]).tolist() == ["1", "x"]
    assert to_labels(["1", "1" * 20]).tolist() == ["1", "1" * 20]


def test_known_rows_of_a_set_are_compared_where_the_whole_is_unknown():
    """Isolet: the test rows are known, the full training set is not."""
    data = Parsed(np.arange(12.0).reshape(6, 2), np.array([0, 1] * 3))
    tail = Parsed(data.X[4:], data.y[4:]).content_hash()
    expect = Expected.model_validate(
        {
            "shape": [6, 2],
            "n_classes": 2,
            "classes": {},
            "known_rows": {"first": 4, "last": 6, "content": tail},
        }
    )
    assert disagreement(data, expect) is None
    X = data.X.copy()
    X[5, 0] += 1e-6
    assert "rows 5 to 6 have other values" in str(disagreement(Parsed(X, data.y), expect))
    X = data.X.copy()
    X[0, 0] += 1
    assert disagreement(Parsed(X, data.y), expect) is None
