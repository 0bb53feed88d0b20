"""Weights of classes in configurations: every machine that has them takes them by one key."""

from __future__ import annotations

from mmbench.config.plan import plan
from mmbench.config.read import load_config
from mmbench.jobs.train import make_machine
from mmbench.machines import MACHINES, machine_class

NAMES = [name for name in MACHINES if "class_weight" in machine_class(name).parameters]


def loaded(folder, machines):
    path = folder / "weights.yaml"
    protocol = "protocol: {test: {holdout: 0.5}}"
    path.write_text(f"name: w\ndatasets: [wine]\n{protocol}\nmachines: {{{machines}}}\n")
    return load_config(path)


def test_balanced_classes_are_a_parameter_of_a_column(tmp_path):
    machines = ", ".join(f"{name}: {{params: {{class_weight: balanced}}}}" for name in NAMES)
    jobs = plan(loaded(tmp_path, machines), tmp_path / "store", None, allow_network=False)
    built = {job.column: make_machine(job, 1, 0).class_weight for job in jobs}
    assert built == dict.fromkeys(NAMES, "balanced")
    assert {"lssvm", "svm"} <= set(NAMES)
