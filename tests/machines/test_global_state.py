"""A training leaves the settings of the process as they were, also if several threads train."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

import mmbench
from mmbench.machines import SVM, SigmaSVM

SETTINGS = """\
import warnings
from joblib import Parallel, delayed
from sklearn.datasets import load_digits, load_wine
from threadpoolctl import ThreadpoolController
from mmbench.machines import LSSVM, SVM

X, y = load_wine(return_X_y=True)
LSSVM().fit(X, y)
pools = ThreadpoolController().select(user_api="blas").lib_controllers
before = [pool.get_num_threads() for pool in pools]
for _ in range(10):
    Parallel(4, backend="threading")(delayed(LSSVM(C=C).fit)(X, y) for C in range(1, 9))
print(before == [pool.get_num_threads() for pool in pools])

X, y = load_digits(n_class=6, return_X_y=True)
before = list(warnings.filters)
for solver in ("sklearn", "liblinear"):
    for _ in range(3):
        SVM(kernel="linear", solver=solver, n_jobs=4).fit(X / 16, y)
print(before == warnings.filters)
"""


def test_trainings_in_several_threads_restore_the_settings_of_the_process():
    """The numbers of threads of BLAS, and the filters of warnings."""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", SETTINGS]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True"], done.stderr


@pytest.mark.parametrize("machine", [SVM, SigmaSVM])
def test_a_training_draws_nothing_from_the_global_generator(machine):
    X, y = load_wine(return_X_y=True)
    before = np.random.get_state()[1:3]  # noqa: NPY002
    machine(solver="sklearn").fit(scale(X), y)
    model = LinearSVC(random_state=0).fit(scale(X), y)
    mmbench.certify(model, scale(X), y)
    after = np.random.get_state()[1:3]  # noqa: NPY002
    assert after[1] == before[1] and (after[0] == before[0]).all()


FIRST_USE = """\
import sys
from threading import Barrier, Thread
import mmbench
import mmbench.machines.base.estimator

# threads wait for one another, as if each import took long
sys.setswitchinterval(1e-5)
names, failed = sorted(mmbench.__all__), []
barrier = Barrier(len(names))

def use(name):
    barrier.wait()
    try:
        getattr(mmbench, name)
    except Exception as error:
        failed.append(repr(error))

threads = [Thread(target=use, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed)
"""


def test_several_threads_may_use_machines_for_the_first_time():
    """If a package imports its modules, threads that import different modules block one another."""
    assert subprocess.check_output([sys.executable, "-c", FIRST_USE], text=True) == "[]\n"
