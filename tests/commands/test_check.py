"""``mmbench check machine``: sound machines pass, and what is wrong is named."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from mmbench.cli.app import app
from mmbench.commands import check as contract
from mmbench.machines import SVM


class TooGood(SVM):
    """A machine whose bound lies above its objective."""

    def train(self, problem, warm=None):
        model = super().train(problem, warm)
        return replace(model, fit=replace(model.fit, bound=model.fit.objective + 1.0))


class Forgetful(SVM):
    """A machine that returns its warm start as the solution."""

    def train(self, problem, warm=None):
        return super().train(problem) if warm is None else warm


class Loose(SVM):
    """A machine that calls its fits optimal, whatever their gap is."""

    def fit(self, X, y):
        super().fit(X, y)
        self.fits_ = [replace(fit, bound=0.5 * fit.objective) for fit in self.fits_]
        return self


class Ordered(SVM):
    """A machine whose objective depends on the first row."""

    def train(self, problem, warm=None):
        return scaled(super().train(problem, warm), 1.0 + abs(float(problem.X[0, 0])))


class Disagreeing(SVM):
    """A machine whose reference solver has another objective."""

    def train(self, problem, warm=None):
        return scaled(super().train(problem, warm), 2.0 if self.solver == "reference" else 1.0)


def scaled(model, factor):
    """Return the model with a multiple of its objective and of its bound."""
    fit = model.fit
    fit = replace(fit, objective=factor * fit.objective, bound=factor * fit.bound)
    return replace(model, fit=fit)


@pytest.fixture(autouse=True)
def _few_checks(monkeypatch):
    """scikit-learn's checks of our own machines have their test already."""
    whole = contract.estimator_checks_generator

    def few(estimator):
        names = ("check_dict_unchanged", "check_classifiers_one_label")
        for made, check in whole(estimator):
            if getattr(check, "func", check).__name__ in names:
                yield made, check

    monkeypatch.setattr(contract, "estimator_checks_generator", few)


def check(name):
    return CliRunner().invoke(app, ["check", "machine", name])


def test_a_sound_machine_passes():
    done = check("svm")
    assert done.exit_code == 0, done.output
    assert re.fullmatch(r"svm: (\d+) of \1 checks passed\n", done.output)


WRONG = {
    "TooGood": "FAILED Fits are certified: a bound below the objective",
    "Forgetful": "FAILED A training with a warm start reaches the objective of a training",
    "Loose": "setosa/versicolor: optimal with a gap 5.0e-01",
    "Ordered": "FAILED The objective does not depend on the order of the rows: objectives",
    "Disagreeing": "FAILED The reference solver, if any, reaches the objective of the default",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_certificate_is_named(name):
    done = check(f"{__name__}:{name}")
    assert done.exit_code == 1
    assert WRONG[name] in done.output


def test_a_classifier_without_certificates_is_put_to_scikit_learn_s_checks():
    done = check("sklearn.naive_bayes.GaussianNB")
    assert done.exit_code == 0, done.output
    assert "no certificates" in done.output and "2 of 2 checks passed" in done.output
