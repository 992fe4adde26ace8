"""Text that is not as `backends.pbs.records` reads it: what Slurm's wrappers print, and ids. Pure.

Job names, comments and variables are printed as their owners wrote them, line breaks included, so a
neighbour can put lines into an answer that look like attributes or whole jobs. Therefore of our own jobs
only those answers are believed that were asked for by id, and hold nobody else's.
"""

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
