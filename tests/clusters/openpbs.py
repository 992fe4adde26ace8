"""A live OpenPBS, wherever one answers: the tests start none."""

from __future__ import annotations

from backends.base import SchedulerError
from backends.commands import Commands
from backends.pbs.choosing import is_openpbs
from backends.pbs.environment import asking_environment


def unavailable() -> str:
    """Why there is no OpenPBS to test on; empty where one answers."""
    try:
        answer = Commands(asking_environment, timeout=10).run("qstat", "--version")
    except SchedulerError as error:
        return f"no live OpenPBS here: {error}"
    return "" if is_openpbs(answer) else "no live OpenPBS here: qstat --version does not print pbs_version"
