"""scikit-learn's own tests of `SVC`, run on `SVM`.

The file svm/tests/test_svm.py of the installed scikit-learn is executed as a module of its own, in
which `SVC` is a subclass of `SVM`. A test belongs to the suite if its code or a parameter set names
`SVC`; parameter sets of other estimators are left out. `DIFFERENCES` lists what `SVM` does
otherwise on purpose; a test that is listed there, or asks for probabilities, has to fail.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from functools import wraps
from types import ModuleType
from unittest import mock

import pytest
import sklearn
import sklearn.svm
from sklearn.utils.fixes import parse_version

from mmbench.machines import SVM

pytest.importorskip("sklearn.svm.tests", reason="scikit-learn is installed without its tests")

PROBABILITY = "no probabilities of its own; scikit-learn's CalibratedClassifierCV computes them"
PRIVATE = "private attributes of SVC"
NEGATIVE = "negative weights are refused, where SVC drops the rows"
DIGITS = "a linear system is solved, with coefficients that differ by 1e-15 from libsvm's"

#: Tests of the suite that fail, by name or by name and parameter set, and why.
DIFFERENCES = {
    "test_libsvm_parameters": f"{DIGITS}; a linear machine does not store its support vectors",
    "test_tweak_params": f"{DIGITS}; {PRIVATE}",
    "test_svc_nusvc_probA_probB_deprecated": PROBABILITY,
    "test_gamma_scale": f"{PRIVATE}; the numerical gamma is in `kernels_`",
    "test_svc_raises_error_internal_representation": PRIVATE,
    "test_negative_sample_weights_mask_all_samples": NEGATIVE,
    "test_negative_weights_svc_leave_just_one_label": NEGATIVE,
    "test_negative_weights_svc_leave_two_labels[partial-mask-label-1-SVC]": NEGATIVE,
    "test_negative_weight_equal_coeffs[partial-mask-label-1-SVC]": NEGATIVE,
    "test_bad_input": "sparse rows are accepted after training on dense rows",
    "test_svc_nonfinite_params": "the message names the kernel matrix",
    "test_immutable_coef_property": "`coef_` is an array that may be changed, as in LinearSVC",
    "test_svc_ovr_tie_breaking": "the largest decision value is that of the predicted class, with "
    "or without `break_ties`",
    "test_custom_kernel_not_array_input": "texts need a precomputed kernel matrix",
    "test_libsvm_convergence_warnings": "the warning names the classes, the gap and the violation",
}


class SVC(SVM):
    """`SVM` under the name that the suite expects in messages."""

    made = 0

    def __new__(cls, *args, **kwargs):
        SVC.made += 1
        return super().__new__(cls)


def suite() -> ModuleType:
    """Return scikit-learn's test module, executed with `SVM` in place of `SVC`."""
    replaced = ModuleType("sklearn.svm")
    vars(replaced).update(vars(sklearn.svm), SVC=SVC)
    spec = importlib.util.find_spec("sklearn.svm.tests.test_svm")
    module = importlib.util.module_from_spec(spec)
    replacing = mock.patch.dict(sys.modules, {"sklearn.svm": replaced})
    with replacing, mock.patch.object(sklearn, "svm", replaced):
        spec.loader.exec_module(module)
    return module


def estimators(values) -> list:
    """Return the estimators, instances or classes, of a parameter set."""
    given = getattr(values, "values", values)
    given = given if isinstance(given, tuple | list) else [given]
    return [value for value in given if hasattr(value, "fit") and hasattr(value, "get_params")]


def on_svc(values) -> bool:
    """Return whether a parameter set names no estimator, or `SVC`."""
    found = estimators(values)
    return not found or any(value is SVC or isinstance(value, SVC) for value in found)


def of_svm(test):
    """Return a test of the suite with the parameter sets of `SVC`, which has to make an `SVC`."""

    @wraps(test)
    def run(*args, **kwargs):
        before = SVC.made
        test(*args, **kwargs)
        assert SVC.made > before, "the test makes no SVC"

    run.pytestmark = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names, values, *_ = mark.args
            ids = mark.kwargs.get("ids") or [None] * len(values)
            kept = [
                value if name is None else pytest.param(*_tuple(value, names), id=name)
                for value, name in zip(values, ids, strict=True)
                if on_svc(value)
            ]
            run.pytestmark.append(pytest.mark.parametrize(names, kept).mark)
        elif mark.name == "filterwarnings":
            run.pytestmark.append(mark)
    return run


def _tuple(value, names):
    single = isinstance(names, str) and "," not in names
    return (value,) if single else value


def names_svc(test) -> bool:
    """Return whether the code or the parameter sets of a test name `SVC`."""
    marks = getattr(test, "pytestmark", [])
    given = [value for mark in marks if mark.name == "parametrize" for value in mark.args[1]]
    return "SVC" in test.__code__.co_names or any(
        estimators(value) and on_svc(value) for value in given
    )


TESTS = {
    name: of_svm(test)
    for name, test in vars(suite()).items()
    if name.startswith("test_") and names_svc(test)
}
globals().update(TESTS)


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"), reason="lists names of 1.9"
)
def test_each_difference_is_a_test_of_the_suite():
    assert {name.partition("[")[0] for name in DIFFERENCES} <= set(TESTS)


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture(autouse=True)
def expected(request):
    """Expect a test in `DIFFERENCES`, or a test that asks for probabilities, to fail."""
    name, test = request.node.name, request.node.originalname
    if test not in TESTS:
        return
    reason = DIFFERENCES.get(name) or DIFFERENCES.get(test)
    if not reason and "probability=" in inspect.getsource(TESTS[test]):
        reason = PROBABILITY
    if reason:
        request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))
