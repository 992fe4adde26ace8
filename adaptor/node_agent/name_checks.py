"""Checks the names of nodes, jobs and uses, which become parts of file names."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")
_JOB = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._\[\]-]{0,200}")


def check_name(name: str) -> str:
    """The same name. Raises ValueError: it is not made of letters, digits, `.`, `_` and `-`."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name of letters, digits, '.', '_' and '-'")
    return name


def check_job(job: str) -> str:
    """The same id of a job; parts of a job array are written `17[3]` by some. Raises ValueError."""
    if not _JOB.fullmatch(job):
        raise ValueError(f"{job!r} is not the id of a job")
    return job
