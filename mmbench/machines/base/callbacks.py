"""scikit-learn's callbacks: the fit is a task, and the training of each pair is its subtask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    CallbackSupportMixin: Any
    with_callbacks: Any

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # scikit-learn has callbacks since version 1.9

        class CallbackSupportMixin:
            """Replacement for the mixin class of scikit-learn 1.9, without callbacks."""

            def _init_callback_context(self, **task):
                return None

        def with_callbacks(method):
            """Wrap a method in a function, as scikit-learn 1.9 does, but without callbacks.

            The wrapper adds one stack frame, as scikit-learn 1.9 does. Therefore warnings need the
            same `stacklevel` with all versions of scikit-learn.
            """
            return wraps(method)(lambda *args, **kwargs: method(*args, **kwargs))


@contextmanager
def hooks_called(machine: Any, task: Any, fitted: Any, data: Mapping[str, Any]) -> Iterator[None]:
    """Call scikit-learn's callback hooks before and after a task; if `task` is None, call no hook.

    `fitted` is the argument `reconstruction_attributes` of the second hook: the function `dict` if
    the machine is fitted after the task, else None.
    """
    if task is not None:
        task.call_on_fit_task_begin(estimator=machine, **data)
    yield
    if task is not None:
        task.call_on_fit_task_end(estimator=machine, reconstruction_attributes=fitted, **data)
