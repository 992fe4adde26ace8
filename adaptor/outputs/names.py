"""The names of tasks' outputs."""

from __future__ import annotations

from typing import Literal

Stream = Literal["stdout", "stderr"]
_ENDS: dict[Stream, str] = {"stdout": "out", "stderr": "err"}

PACK = "packed-"
"""What the names of an archive and its index begin with: `packed-NODE-PID.tar`, `packed-NODE-PID.index`."""
ARCHIVE, INDEX = ".tar", ".index"


def output_name(task: int, attempt: int, stream: Stream) -> str:
    """`5.out`; from the second attempt on, the attempt is part of the name: `5.2.out`."""
    stem = f"{task}" if attempt <= 1 else f"{task}.{attempt}"
    return f"{stem}.{_ENDS[stream]}"
