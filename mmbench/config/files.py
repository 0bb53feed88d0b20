"""Where experiments are found: in ``configs/`` here, and among those that come with mmbench."""

from pathlib import Path

from mmbench.errors import UserError, did_you_mean
from mmbench.resources import CONFIGS

#: Where a bare name such as ``quickstart`` is looked up first.
LOCAL = Path("configs")
#: A larger file is no experiment; /dev/zero never ends.
MAX_BYTES = 4 * 2**20


def find_config(name: str | Path) -> Path:
    """Return the file of an experiment given by path or name.

    A name, ``configs/NAME.yaml`` too, is looked up in ``configs/`` here, then among the experiments
    that come with mmbench.

    Raises
    ------
    UserError
        If there is no such file.
    """
    path = Path(name)
    if path.exists():
        return path
    named = config_files().get(path.stem if path.suffix == ".yaml" else path.name)
    if named is not None and path.parent in (Path(), LOCAL):
        return named
    others = path.parent.glob("[!.]*.yaml") if path.suffix else ()
    hint = did_you_mean(path.stem, {other.stem for other in others} or set(config_files()))
    raise UserError(f"{path}: no such file{hint}")


def config_files() -> dict[str, Path]:
    """Return the files of the experiments that have a name here, by name."""
    files = [*CONFIGS.glob("[!.]*.yaml"), *LOCAL.glob("[!.]*.yaml")]
    return {path.stem: path for path in sorted(files, key=lambda path: path.stem)}


def read_text(path: Path) -> str:
    """Return the text of a file of moderate size.

    Raises
    ------
    UserError
        If it cannot be read; the message names the file.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UserError(f"{path}: is larger than {MAX_BYTES // 2**20} MiB; not an experiment")
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
