"""Which dialect answers here: told by the version that `qstat` prints, never by the names of programs."""

from __future__ import annotations

from adaptor.config.schema import SiteConfig
from backends.base import SchedulerError
from backends.commands import Commands
from backends.pbs.dialect import Dialect
from backends.pbs.openpbs import recognition as openpbs
from backends.pbs.torque import recognition as torque
from backends.pbs.torque.dialect import Torque


def choose(site: SiteConfig, commands: Commands) -> Dialect:
    """The site's own choice (`dialect`), else the dialect whose version answers.

    Raises:
        SchedulerError: no PBS answers here, or none that we know.
    """
    match site.dialect:
        case "openpbs":
            return openpbs.dialect(commands)
        case "torque":
            return torque.dialect(commands)
    answer = commands.run("qstat", "--version")
    if openpbs.recognises(answer):
        return openpbs.dialect(commands)
    if torque.recognises(answer):
        return Torque(commands)
    if torque.is_slurms(answer):
        raise SchedulerError("qstat is Slurm's imitation of Torque here: set `backend: slurm` for this site")
    raise SchedulerError(
        f"qstat is here, but neither OpenPBS nor Torque answers (qstat --version: {answer.complaint}): "
        "set `dialect` for this site if it is one of them"
    )
