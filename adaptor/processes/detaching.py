"""A process that goes on after whoever started it has left. Standard library only."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

Answer = Callable[[str], None]
"""Tells whoever waits for it; to be called once."""


def in_background(work: Callable[[Answer], None]) -> str:
    """Do `work` in a detached process; returns what that answers first, empty where it died before."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        _work_detached(work, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        return answers.read().decode(errors="replace")


def _work_detached(work: Callable[[Answer], None], writer: int) -> None:
    code = 1
    try:
        _detach()
        work(lambda words: _say(writer, words))
        code = 0
    finally:
        os._exit(code)  # nothing of whoever forked us is to be undone here


def _say(writer: int, words: str) -> None:
    os.write(writer, words.encode())
    os.close(writer)


def _detach() -> None:
    """Leave the terminal, the session and the folder of whoever started us."""
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)
