"""Whether it is OpenPBS that answers."""

from __future__ import annotations

import re

from backends.commands import Answer, Commands
from backends.pbs.openpbs.dialect import OpenPbs

_VERSION = re.compile(r"^pbs_version = (\S+)", re.MULTILINE)


def recognises(answer: Answer) -> bool:
    """By the answer of `qstat --version`; Slurm's program of that name fails, Torque's prints other words."""
    return answer.status == 0 and bool(_VERSION.search(answer.output))


def dialect(commands: Commands) -> OpenPbs:
    return OpenPbs(commands)
