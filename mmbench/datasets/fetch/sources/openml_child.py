"""Child process of `openml_`: download one OpenML data set and print where it lies, as JSON."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path


def limit_silence(seconds: float) -> None:
    """Give every request a time limit, which ``openml`` neither sets nor lets one set."""
    import requests

    original = requests.Session.send

    @functools.wraps(original)
    def send(self, request, **options):
        if options.get("timeout") is None:
            options["timeout"] = seconds
        return original(self, request, **options)

    requests.Session.send = send  # type: ignore[method-assign]


def download(data_id: int, server: str, folder: Path) -> dict[str, str]:
    """Return the ARFF file's place and the name of its target column."""
    import openml

    openml.config.server = server
    openml.config.set_root_cache_directory(folder)
    openml.config.connection_n_retries = 1
    dataset = openml.datasets.get_dataset(data_id, download_data=True)
    target = dataset.default_target_attribute
    if not target or "," in target:
        return {"error": f"it has no single target column ({target})"}
    return {"arff": str(dataset.data_file), "target": target}


def describe(error: Exception, seconds: float) -> str:
    """Return one line on a failure inside ``openml``, ``requests`` or the XML parser."""
    text = " ".join(str(error).split())
    if "timed out" in text:
        return f"no answer within {seconds:g} s"
    if isinstance(error, KeyError) or "xml" in type(error).__module__:
        return "the server's answer is not in OpenML's format"
    if "Max retries exceeded" in text:
        return "the server cannot be reached"
    if "IncompleteRead" in text:
        return "the connection broke off"
    return text[:200] or type(error).__name__


def main() -> None:
    """Read ``id server timeout folder`` from the command line."""
    data_id, server, seconds, folder = sys.argv[1:5]
    limit_silence(float(seconds))
    try:
        answer = download(int(data_id), server, Path(folder))
    except Exception as error:  # the parent must hear of every failure of a foreign package
        answer = {"error": describe(error, float(seconds))}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
