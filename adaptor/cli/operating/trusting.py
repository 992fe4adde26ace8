"""Whether code that root is going to run could be changed by somebody else."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

from adaptor.errors import AdaptorError

_TELL = (
    "import os, sys, sysconfig, adaptor.node_agent.reclaim as m;"
    "print(os.path.realpath(sys.executable), sys.prefix, sysconfig.get_path('stdlib'),"
    "sysconfig.get_path('purelib'), m.__file__, sep='\\n')"
)
_PATIENCE = 30


def changeable_by_others(interpreter: str) -> list[str]:
    """What of an interpreter and of this package in it is not root's alone, one phrase for each place.

    Raises:
        AdaptorError: it cannot be run, or does not have this package.
    """
    paths = [Path(interpreter), *(Path(line) for line in _places(interpreter))]
    checked = dict.fromkeys(part for path in paths for part in (*reversed(path.parents), path))
    return [problem for part in checked if (problem := _problem(part))][:3]


def _places(interpreter: str) -> list[str]:
    try:
        done = subprocess.run(
            [interpreter, "-I", "-c", _TELL],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AdaptorError(f"{interpreter}: cannot be run: {error}") from error
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise AdaptorError(f"{interpreter}: does not have the adaptor: {why}; install it there")
    return done.stdout.splitlines()


def _problem(path: Path) -> str:
    status = path.stat()
    if status.st_uid:
        return f"{path} belongs to user {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        return f"{path} may be written by others"
    return ""
