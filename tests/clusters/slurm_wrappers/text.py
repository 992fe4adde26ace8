"""What Slurm's wrappers print otherwise than Torque, and ids. Pure."""

from __future__ import annotations

import re

_WRAPPER_HEAD = re.compile(r"^((?:Job Id|Queue):)\t", re.MULTILINE)
_WRAPPER_ATTRIBUTE = re.compile(r"^\t", re.MULTILINE)
_LISTED = re.compile(r"^(\d+) ", re.MULTILINE)


def as_torque(text: str) -> str:
    """The long form of Slurm's `qstat -f`, which has tabs where Torque has blanks, as Torque prints it."""
    return _WRAPPER_ATTRIBUTE.sub("    ", _WRAPPER_HEAD.sub(r"\1 ", text))


def listed_ids(text: str) -> list[str]:
    """The ids that Slurm's `qstat -u USER` printed."""
    return _LISTED.findall(text)
