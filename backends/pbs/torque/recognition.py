"""Torque is told by the version that its commands print, Slurm's wrappers of them by the site itself."""

from __future__ import annotations

import re

from backends.base import SchedulerError
from backends.commands import Answer, Commands
from backends.pbs.torque.dialect import Torque
from backends.pbs.torque.slurm import SlurmWrappers

_VERSION = re.compile(r"^version: *\d", re.IGNORECASE | re.MULTILINE)
_WRAPPER = "[--man]"
"""In the usage that Slurm's wrappers print of themselves, and no PBS does; they know no `--version`."""


def recognises(answer: Answer, commands: Commands) -> bool:  # noqa: ARG001  the version says it all
    """Whether `qstat --version` is Torque's: `Version: 6.1.2`, on standard error.

    Slurm's wrappers are not taken for it: `backend: slurm` is what their site should say.
    """
    return answer.status == 0 and _VERSION.search(answer.output + "\n" + answer.errors) is not None


def dialect(commands: Commands) -> Torque:
    """The dialect of a site that is known, or said, to be Torque.

    Raises:
        SchedulerError: neither Torque nor Slurm's wrappers of its commands answer.
    """
    answer = commands.run("qstat", "--version")
    if recognises(answer, commands):
        return Torque(commands)
    if _WRAPPER in answer.errors:
        return SlurmWrappers(commands)
    raise SchedulerError(f"neither Torque nor Slurm's qstat answers (qstat --version: {answer.complaint})")
