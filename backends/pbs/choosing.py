"""Which dialect answers here: told by the version that `qstat` prints, never by the names of programs."""

from __future__ import annotations

import re

from adaptor.config.schema import SiteConfig
from backends.base import SchedulerError
from backends.commands import Answer, Commands
from backends.pbs.dialect import Dialect
from backends.pbs.openpbs.dialect import OpenPbs
from backends.pbs.torque.dialect import Torque

_OPENPBS = re.compile(r"^pbs_version = (\S+)", re.MULTILINE)
_TORQUE = re.compile(r"^version: *\d", re.IGNORECASE | re.MULTILINE)
_WRAPPER = "[--man]"
"""In the usage that Slurm's wrappers of Torque's commands print of themselves; they know no `--version`."""


def choose(site: SiteConfig, commands: Commands) -> Dialect:
    """The site's own choice (`dialect`), else the dialect whose version answers.

    Raises:
        SchedulerError: no PBS answers here, or neither OpenPBS nor Torque.
    """
    if site.dialect == "openpbs":
        return OpenPbs(commands)
    answer = commands.run("qstat", "--version")
    if site.dialect is None and is_openpbs(answer):
        return OpenPbs(commands)
    if is_torque(answer):
        return Torque(commands)
    if _WRAPPER in answer.errors:
        raise SchedulerError("qstat is Slurm's imitation of Torque here: set `backend: slurm` for this site")
    if site.dialect is not None:
        raise SchedulerError(f"Torque does not answer (qstat --version: {answer.complaint})")
    raise SchedulerError(
        f"qstat is here, but neither OpenPBS nor Torque answers (qstat --version: {answer.complaint}): "
        "set `dialect` for this site if it is one of them"
    )


def is_openpbs(answer: Answer) -> bool:
    """By the answer of `qstat --version`: `pbs_version = 23.06.06`. Slurm's program of that name fails."""
    return answer.status == 0 and _OPENPBS.search(answer.output) is not None


def is_torque(answer: Answer) -> bool:
    """By the answer of `qstat --version`: `Version: 6.1.2`, on standard error."""
    return answer.status == 0 and _TORQUE.search(answer.output + "\n" + answer.errors) is not None
