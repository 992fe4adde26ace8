"""Claims, times and ends one job of the local site: `python -m backends.local.supervisor NOTE LOCK`.

It is a process of its own in a session of its own, so that `(p, tr)` is enforced whatever becomes of
the daemon. The standard library only, so that it starts quickly. `NOTE` is the job's note. `LOCK` is
the file descriptor of the site's lock, which so stays held until the job is claimed, even if whoever
wanted it started is killed meanwhile. The command returns when the job is claimed (0) or could not be (1).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from backends.local.execution import SIGNALS, run
from backends.local.identity import own_identity
from backends.local.notes import END, START, note_path, read_note, write_once

_CLAIMED = b"claimed"
_END_PATIENCE = 600.0
"""Seconds for which the end is tried to be written down, for instance on a full disk."""


def main(note: Path, lock: int) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        _supervise(note, lock, writer)
        return 0
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        answer = answers.read()
    if answer == _CLAIMED:
        return 0
    sys.stderr.write(answer.decode(errors="replace") or "the supervisor died before it claimed the job")
    return 1


def _supervise(note: Path, lock: int, writer: int) -> None:
    _detach()
    started = time.time()
    try:
        job = read_note(note)
        claim = {"started": started, "supervisor": own_identity()}
        write_once(note_path(note.parent, job["id"], START), claim)
    except (OSError, ValueError) as error:
        os.write(writer, str(error).encode())
        return
    os.write(writer, _CLAIMED)
    os.close(writer)
    os.close(lock)
    _write_end(note_path(note.parent, job["id"], END), run(job, started))


def _detach() -> None:
    """Leave the terminal, the session and the folder of whoever started us."""
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


def _write_end(path: Path, end: dict[str, Any]) -> None:
    give_up = time.monotonic() + _END_PATIENCE
    while not _written(path, end) and path.parent.is_dir() and time.monotonic() < give_up:
        time.sleep(1)


def _written(path: Path, end: dict[str, Any]) -> bool:
    try:
        write_once(path, end)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
