"""The names of tasks' outputs."""

from __future__ import annotations

import contextlib
import os
from typing import Literal

from adaptor.bag_spec import DEFAULT_OUTPUT

Stream = Literal["stdout", "stderr"]
_ENDS: dict[Stream, str] = {"stdout": "out", "stderr": "err"}

PACK = "packed-"
"""What the names of an archive and its index begin with: `packed-NODE-PID.tar`, `packed-NODE-PID.index`."""
ARCHIVE, INDEX = ".tar", ".index"


def output_name(task: int, attempt: int, stream: Stream) -> str:
    """`5.out`; from the second attempt on, the attempt is part of the name: `5.2.out`."""
    stem = f"{task}" if attempt <= 1 else f"{task}.{attempt}"
    return f"{stem}.{_ENDS[stream]}"


_MOST = 10_000


def numbers_of_others(output: str) -> tuple[int, ...]:
    """Numbers of bags whose output folder of the default name another user has made, at most 10,000.

    Workers write into no such folder. `output`: with `{bag}` in place of the number. Empty if a person has
    named it: such a folder may be a group's.
    """
    above, name = os.path.split(output)
    before, _, behind = DEFAULT_OUTPUT.partition("{bag}")
    found = []
    with contextlib.suppress(OSError), os.scandir(above) as entries:
        for entry in entries if name == DEFAULT_OUTPUT else ():
            number = entry.name.removeprefix(before).removesuffix(behind)
            if entry.name == f"{before}{number}{behind}" and number.isdecimal() and _of_another(entry):
                found.append(int(number))
    return tuple(sorted(found)[-_MOST:])


def _of_another(entry: os.DirEntry[str]) -> bool:
    with contextlib.suppress(OSError):
        return entry.stat(follow_symlinks=False).st_uid != os.geteuid()
    return False
