"""Tables by reference: ``openml:31`` and ``sklearn:wine`` in place of a path."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch import Places, Store
from mmbench.datasets.fetch.sources import SourceError
from mmbench.datasets.fetch.sources.openml_ import download_arff
from mmbench.datasets.fetch.sources.sklearn_ import time_limit
from mmbench.datasets.user.formats import Table, of_arrays
from mmbench.errors import did_you_mean


def openml_file(data_id: int, places: Places) -> tuple[Path, str]:
    """Return an ARFF file and its target, from the store, a mirror folder or OpenML.

    Raises
    ------
    ValueError
        If it is not there and cannot be downloaded; one line.
    """
    store = Store(places.store)
    folders = [folder / "openml" for folder in (store.root, places.mirror_folder) if folder]
    for folder in folders:
        path, facts = folder / f"{data_id}.arff", folder / f"{data_id}.json"
        if path.is_file() and facts.is_file():
            return path, json.loads(facts.read_text("utf-8"))["target"]
    if not places.allow_network:
        raise ValueError("not in the store or the mirror, and the network is switched off")
    with store.scratch() as scratch:
        try:
            arrived, target = download_arff(data_id, scratch, places.progress)
        except SourceError as error:
            raise ValueError(str(error)) from error
        (scratch / "facts").write_text(json.dumps({"target": target}), "utf-8")
        store.admit(arrived, folders[0] / f"{data_id}.arff")
        store.admit(scratch / "facts", folders[0] / f"{data_id}.json")
    return folders[0] / f"{data_id}.arff", target


def sklearn_table(name: str, places: Places) -> Table:
    """Return the data set that ``load_NAME`` or ``fetch_NAME`` of scikit-learn returns.

    Raises
    ------
    ValueError
        If there is none, or it is no table with classes.
    """
    from sklearn import datasets

    loaders = {
        loader.partition("_")[2]: loader
        for loader in datasets.__all__
        if loader.startswith(("fetch_", "load_"))
    }
    if name not in loaders:
        raise ValueError(f"scikit-learn has no data set {name!r}{did_you_mean(name, loaders)}")
    options: dict[str, Any] = {}
    if loaders[name].startswith("fetch_"):
        home = Path(places.store) / "sklearn"
        options = {"data_home": home, "download_if_missing": places.allow_network}
    try:
        with time_limit():
            bunch = getattr(datasets, loaders[name])(**options)
        y, names = np.asarray(bunch.target), getattr(bunch, "target_names", None)
        if names is not None and y.ndim == 1 and y.dtype.kind == "i":
            y = np.asarray(names)[y]
        return of_arrays(np.asarray(bunch.data), y)
    except OSError as error:
        raise ValueError(str(error)) from error
    except (AttributeError, TypeError) as error:
        raise ValueError(f"scikit-learn's {loaders[name]} gives no table with classes") from error


def table_hash(table: Table) -> str:
    """Return the content hash of a table of numbers."""
    frame = table.frame
    X = frame.drop(columns="target").to_numpy(np.float64)
    return Parsed(X, frame["target"].to_numpy()).content_hash()
