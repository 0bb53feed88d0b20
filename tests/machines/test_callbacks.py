"""scikit-learn's callbacks, which it has since version 1.9, and links in notebooks."""

import importlib.metadata
import warnings
from email.message import Message

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_html_repr

from mmbench.machines import KLDA, MACHINES, SVM, machine_class

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


class Recorder:
    """A callback that stores the tasks of a fit."""

    def __init__(self, wrong=False):
        self.begun, self.ended, self.calls, self.wrong = [], [], [], wrong

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, y):
        self.begun.append((context.task_name, len(X), sorted(set(y))))
        if self.wrong:
            raise RuntimeError("stopped by a callback")

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        score = fitted_estimator and fitted_estimator.score(X, y)
        self.ended.append((context.task_name, score, metadata))


@pytest.fixture
def callback():
    return pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_callback_sees_the_fit_and_each_pair_of_classes(callback, n_jobs):
    seen = Recorder()
    machine = SVM(n_jobs=n_jobs).set_callbacks(seen).fit(X, NAMES, np.full(150, 2.0))
    pairs = ["setosa/versicolor", "setosa/virginica", "versicolor/virginica"]
    assert sorted(seen.begun) == [
        ("fit", 150, ["setosa", "versicolor", "virginica"]),
        *((pair, 100, pair.split("/")) for pair in pairs),
    ]
    assert sorted(name for name, _, _ in seen.ended[:-1]) == pairs
    name, score, metadata = seen.ended[-1]
    assert (name, score) == ("fit", machine.score(X, NAMES))
    assert metadata["sample_weight"].tolist() == [2.0] * 150
    assert seen.calls == ["setup", "teardown"]


@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_has_callbacks(callback, name):
    seen = Recorder()
    rows, labels = X[::5], NAMES[::5]
    plain = machine_class(name)().fit(rows, labels).decision_function(rows)
    machine = machine_class(name)().set_callbacks(seen).fit(rows, labels)
    # pairs with callbacks are trained one by one
    np.testing.assert_allclose(machine.decision_function(rows), plain, 1e-12, 1e-12)
    assert seen.ended[-1][:2] == ("fit", machine.score(rows, labels))
    assert seen.calls == ["setup", "teardown"]


def test_a_callback_that_fails_is_torn_down(callback):
    seen = Recorder(wrong=True)
    with pytest.raises(RuntimeError, match="stopped by a callback"):
        SVM().set_callbacks(seen).fit(X, Y)
    assert seen.calls == ["setup", "teardown"]


def test_progress_bars_of_a_grid_search_show_the_machine(callback, capsys):
    pytest.importorskip("rich")
    bar = callback.ProgressBar(max_propagation_depth=None)
    search = GridSearchCV(KLDA(), {"gamma": [0.1, 1.0]}, cv=2).set_callbacks(bar)
    search.fit(X[::5], NAMES[::5])
    assert "KLDA - fit" in capsys.readouterr().out


def test_warnings_point_to_the_call_of_fit():
    machine, indefinite = SVM(max_iter=1), SVM(kernel="precomputed")
    for fit, rows in ((machine.fit, X), (indefinite.fit, -X @ X.T)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(rows, Y)
        assert {each.filename for each in caught} == {__file__}
        assert any(issubclass(each.category, ConvergenceWarning) for each in caught)


def test_notebooks_link_to_the_documentation_that_the_installed_package_names(monkeypatch):
    named = Message()
    named["Project-URL"] = "Source, https://code.invalid"
    monkeypatch.setattr("mmbench.machines.base.estimator.metadata", lambda _: named)
    assert "href" not in estimator_html_repr(SVM())
    named["Project-URL"] = "Documentation, https://docs.invalid/"
    page = "https://docs.invalid/generated/mmbench.machines.SVM.html"
    assert f'href="{page}"' in estimator_html_repr(SVM())
    monkeypatch.setattr("mmbench.machines.base.estimator.metadata", absent)
    assert "href" not in estimator_html_repr(SVM())


def absent(name):
    raise importlib.metadata.PackageNotFoundError(name)
