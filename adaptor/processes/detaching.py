"""Run work in a process that outlives the one that started it. Standard library only."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

SayToParent = Callable[[str], None]
"""Sends the answer to the process that waits in `in_background`; call it once."""


def in_background(work: Callable[[SayToParent], None]) -> str:
    """Do `work` in a detached process. Returns its answer; empty if it died before it answered."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        code = 1
        try:
            # Leave the terminal, the session and the folder of the starting process.
            os.setsid()
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.chdir("/")
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            os.close(null)
            work(lambda words: _say(writer, words))
            code = 0
        finally:
            os._exit(code)  # run no cleanup of the process that forked this one
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        return answers.read().decode(errors="replace")


def _say(writer: int, words: str) -> None:
    os.write(writer, words.encode())
    os.close(writer)
