"""The experiment that ``parameters_from`` names: another one takes over what it selects."""

from __future__ import annotations

from collections.abc import Iterable

from mmbench.config.model import Config
from mmbench.config.read import load_config
from mmbench.config.smoke import SUFFIX, smoke


def source_of(config: Config) -> Config | None:
    """Return the experiment that another one takes its parameters from, None if it has its own.

    Of a smoke version it is the smoke version, with the one degree that is left.

    Raises
    ------
    UserError
        If its file is not a valid experiment any more.
    """
    if config.parameters_from is None:
        return None
    source = load_config(config.parameters_from)
    if not config.name.endswith(SUFFIX):
        return source
    return smoke(source).model_copy(update={"degree": config.degree})


def with_sources(configs: Iterable[Config]) -> list[Config]:
    """Put before each experiment the one that it takes parameters from, which must run first."""
    out: dict[str, Config] = {}
    for config in configs:
        source = source_of(config)
        for one in (source, config):
            if one is not None:
                out.setdefault(one.name, one)
    return list(out.values())
