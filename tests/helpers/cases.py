"""Tables of cases in YAML files beside the tests."""

from pathlib import Path
from typing import Any

import yaml


def cases(test: str, name: str) -> Any:
    """Return the content of a file beside a test; libyaml, where it is, is ten times as fast."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(Path(test).with_name(name).read_text("utf-8"), loader)
