"""Files that come with mmbench: inside the package as installed, beside it in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def _folder(inside: str, beside: str) -> Path:
    installed = _PACKAGE / inside
    return installed if installed.is_dir() else _PACKAGE.parent / beside


#: The experiments.
CONFIGS = _folder("configs", "configs")
#: The tables of full runs, a folder for each experiment.
REFERENCE = _folder("reference", "results/reference")
