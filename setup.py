"""Experiments and reference tables lie where people look for them; a wheel has them inside."""

from setuptools import find_packages, setup

BESIDE = {"mmbench.configs": "configs", "mmbench.reference": "results/reference"}

setup(packages=[*find_packages(include=["mmbench*"]), *BESIDE], package_dir=BESIDE)
