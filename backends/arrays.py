"""Pilot arrays: the names of their jobs, and how each job finds out which pilot it is.

The pilots of an array have numbers that follow each other. The array's job is named by the first and the last
of them, `adaptor-x.hpc.12-51`, so that the job with index 3 (from 0 on) is known to be `adaptor-x.hpc.15`,
whatever else was lost.
"""

from __future__ import annotations

import re
from pathlib import Path

from backends.base import PilotOrder

_NAME = re.compile(r"(.*\.)(\d{1,18})-(\d{1,18})")
_TAG = re.compile(r"(.*\.)(\d{1,18})")


def job_name(order: PilotOrder) -> str:
    """The name of its job; of an array, of all its jobs."""
    tag = _TAG.fullmatch(order.tag) if order.pilots > 1 else None
    return order.tag if tag is None else f"{order.tag}-{int(tag[2]) + order.pilots - 1}"


def script_of(order: PilotOrder) -> Path:
    """Path of the order's script. Some schedulers read it when a job starts, so each array has its own."""
    return order.directory / ("pilot.sh" if order.pilots == 1 else f"{job_name(order)}.sh")


def tag_of(name: str, index: int) -> str:
    """The tag of the pilot whose job has this name and index; a name that is no array's is its own tag."""
    match = _NAME.fullmatch(name)
    if match is None or not 0 <= index <= int(match[3]) - int(match[2]):
        return name
    return f"{match[1]}{int(match[2]) + index}"
