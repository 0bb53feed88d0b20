"""Probabilities of classes by scikit-learn's calibration, for columns that ask for them.

The parameters are those that were selected. The machine is trained again on folds of the training
part, and what it decides of the rows held out is mapped to probabilities, for each class against
the rest. No decision depends on them: predictions stay those of the job's own machine.
"""

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning

from mmbench.allowance import OutOfTime, time_is_up
from mmbench.jobs.data import Prepared
from mmbench.jobs.job import Job
from mmbench.machines.base import PairwiseClassifier
from mmbench.machines.foreign import ForeignClassifier
from mmbench.selection.folds import inner_splits


def calibrated_probabilities(
    machine: PairwiseClassifier, job: Job, data: Prepared, seed: int
) -> tuple[NDArray, list[str]]:
    """Return the probabilities of the classes of the test rows, and what is to be said of them.

    Parameters
    ----------
    machine : PairwiseClassifier
        With the selected parameters; fitted, so that its classes are known.
    job : Job
        Says by which method, and of how many folds.
    data : Prepared
    seed : int
        Of the folds.

    Returns
    -------
    probabilities : ndarray of shape (n_test, n_classes)
    warnings : list of str

    Raises
    ------
    OutOfTime
        If the time of the job is up before the trainings are done.
    """
    labels = np.searchsorted(machine.classes_, data.y_train)
    groups = None if data.groups_pool is None else data.groups_pool[: len(labels)]
    folds = inner_splits(labels, job.calibration_folds, None, 1, seed, groups)
    own = machine.estimator if isinstance(machine, ForeignClassifier) else machine
    model = CalibratedClassifierCV(clone(own), method=job.calibrate, cv=folds, ensemble=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(data.X_train, data.y_train)
    if time_is_up():
        raise OutOfTime(0, len(folds) + 1)
    n = sum(issubclass(one.category, ConvergenceWarning) for one in caught)
    notes = [f"calibration: {n} of its trainings of pairs did not end optimal"] if n else []
    return model.predict_proba(data.X_test), notes
