"""Torque is told by the version that its commands print."""

from __future__ import annotations

import re

from backends.base import SchedulerError
from backends.commands import Answer, Commands
from backends.pbs.torque.dialect import Torque

_VERSION = re.compile(r"^version: *\d", re.IGNORECASE | re.MULTILINE)
_WRAPPER = "[--man]"
"""In the usage that Slurm's wrappers of Torque's commands print of themselves; they know no `--version`."""


def recognises(answer: Answer) -> bool:
    """Whether `qstat --version` is Torque's: `Version: 6.1.2`, on standard error."""
    return answer.status == 0 and _VERSION.search(answer.output + "\n" + answer.errors) is not None


def is_slurms(answer: Answer) -> bool:
    """Whether `qstat --version` was answered by the wrapper that some packages of Slurm bring."""
    return _WRAPPER in answer.errors


def dialect(commands: Commands) -> Torque:
    """The dialect of a site that says that it is Torque.

    Raises:
        SchedulerError: Torque does not answer.
    """
    answer = commands.run("qstat", "--version")
    if recognises(answer):
        return Torque(commands)
    if is_slurms(answer):
        raise SchedulerError("qstat is Slurm's imitation of Torque here: set `backend: slurm` for this site")
    raise SchedulerError(f"Torque does not answer (qstat --version: {answer.complaint})")
