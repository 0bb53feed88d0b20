"""``mmbench check``: whether a machine of another package does what is asked of every machine."""

from mmbench.commands.options import Say
from mmbench.errors import UserError


def check_machine(path: str, say: Say) -> int:
    """Put a machine to all checks, say what came of them, and return the exit code.

    Parameters
    ----------
    path : str
        Name of a machine, or ``module:Class``.
    say : callable

    Raises
    ------
    UserError
        If there is no such machine.
    """
    from mmbench.jobs import contract
    from mmbench.machines import machine_class
    from mmbench.machines.base.estimator import PairwiseClassifier

    cls = machine_class(path)
    make = cls if issubclass(cls, PairwiseClassifier) else cls.make
    try:
        make()
    except Exception as error:
        raise UserError(f"{path}: cannot be made without arguments: {error}") from None
    found = list(contract.check_machine(make))
    wrong = [check for check in found if check.problem is not None]
    for check in wrong:
        say(f"FAILED {check.name}: {check.problem}")
    certified = "" if make is cls else "; it solves no problem that is stated here: no certificates"
    say(f"{path}: {len(found) - len(wrong)} of {len(found)} checks passed{certified}")
    return 1 if wrong else 0
