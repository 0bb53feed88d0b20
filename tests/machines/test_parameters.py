"""What the declarations of a machine say in its documentation."""

import inspect
import re

import pytest
from helpers.cases import cases
from sklearn.datasets import load_iris

from mmbench.machines import MACHINES, machine_class
from mmbench.machines.base.parameters import parameter, positive
from mmbench.machines.svm import SVM


def entries(documentation, section):
    """Return the names that a numpydoc section of a docstring has entries for."""
    body = documentation.split(f"{section}\n{'-' * len(section)}\n")[1].split("\n\n")[0]
    heads = re.findall(r"^(\S[^:]*?) :", body, flags=re.MULTILINE)
    return [name for head in heads for name in head.split(", ")]


BAD = cases(__file__, "bad_parameters.yaml")


@pytest.mark.parametrize(("name", "parameters", "words"), BAD, ids=str)
def test_bad_parameters_are_named(name, parameters, words):
    with pytest.raises(ValueError, match=words) as caught:
        machine_class(name)(**parameters).fit([[0.0], [1.0]], [0, 1])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_documents_every_parameter_once(name):
    machine = machine_class(name)
    assert entries(machine.__doc__, "Parameters") == list(inspect.signature(machine).parameters)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_documents_what_it_holds_after_fit(name, kernel):
    if kernel not in machine_class(name).kernels:
        pytest.skip(f"{name} has no {kernel} kernel")
    X, y = load_iris(return_X_y=True)
    machine = machine_class(name)(kernel=kernel).fit(X[::4], y[::4])
    names = (*vars(machine), *dir(type(machine)))  # the properties too
    held = {name for name in names if name.endswith("_") and not name.startswith("_")}
    assert held <= set(entries(type(machine).__doc__, "Attributes"))


def test_an_unknown_parameter_is_named_with_its_machine_and_the_nearest():
    with pytest.raises(TypeError, match=r"^SVM has no parameter 'gama'; did you mean 'gamma'\?$"):
        machine_class("svm")(gama=1)


def test_a_machine_of_ones_own_inherits_the_documentation_of_its_base():
    class Own(SVM):
        """An SVM that doubles its margin.

        Attributes
        ----------
        doubled_ : float
        """

        factor: float = parameter(2.0, positive(), "By how much.")

    assert entries(Own.__doc__, "Parameters")[:2] == ["factor", "C"]
    assert entries(Own.__doc__, "Attributes") == [*entries(SVM.__doc__, "Attributes"), "doubled_"]


def test_a_machine_without_a_docstring_keeps_that_of_its_base():
    class Silent(SVM):
        pass

    assert Silent.__doc__ is None
