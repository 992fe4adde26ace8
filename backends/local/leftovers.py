"""Finds and ends the processes of a job whose supervisor can no longer do that."""

from __future__ import annotations

import contextlib
import os
import signal

import psutil

from backends.local.execution import MARKER


def end_leftovers(marker: str) -> int:
    """End all processes of this user that carry a job's marker, and all below them; returns how many.

    They are stopped before they are killed: what is stopped can start nothing, and stays the parent
    by which its unmarked children are found.
    """
    stopped: dict[int, psutil.Process] = {}
    while fresh := [process for process in _tree(marker) if process.pid not in stopped]:
        for process in fresh:
            stopped[process.pid] = process
            _send(process, signal.SIGSTOP)
    for process in stopped.values():
        _send(process, signal.SIGKILL)
    return len(stopped)


def _tree(marker: str) -> list[psutil.Process]:
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.uids().real == os.getuid() and process.environ().get(MARKER) == marker:
                found[process.pid] = process
                found.update({child.pid: child for child in process.children(recursive=True)})
    found.pop(os.getpid(), None)
    return list(found.values())


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error):
        process.send_signal(number)
