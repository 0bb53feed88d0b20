"""The defaults of a machine's parameters and its version change together, or not at all.

Parameters of `predict` do not count. `defaults.json` has a
line for each version that a machine had: a hash of its default parameters and its versions by
kernel. Lines are only added: whoever changes a default raises `version`, and whoever raises a
version adds its line, which this test prints.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from mmbench.jobs.identity import PREDICTION
from mmbench.machines import ALIASES, MACHINES, alias_of, machine_class, make_machine

TABLE = json.loads(Path(__file__).with_suffix("").with_name("defaults.json").read_text())
NAMES = [*MACHINES, *ALIASES]


def state(name):
    """Return the version of a machine, and the hash of its default parameters."""
    cls = machine_class(name)
    kernels = "".join(f" {kernel}+{more}" for kernel, more in sorted(cls.kernel_versions.items()))
    version = f"{cls.version + alias_of(name).version}{kernels}"
    given = make_machine(name).get_params()
    params = {k: v for k, v in given.items() if k not in PREDICTION}
    digest = hashlib.sha256(json.dumps(params, sort_keys=True).encode()).hexdigest()[:12]
    return version, digest


@pytest.mark.parametrize("name", NAMES)
def test_defaults_change_with_the_version_alone(name):
    version, digest = state(name)
    line = f'"{name}": {{"{version}": "{digest}"}}'
    assert version in TABLE.get(name, {}), f"a new version: add {line} to defaults.json"
    assert TABLE[name][version] == digest, (
        f"a default of {name} changed: raise its version, and add the line of the new one"
    )
