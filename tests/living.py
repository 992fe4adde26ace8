"""Waiting, and looking at processes that may end at any moment, also during the look."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

PATIENCE = 300.0
"""Seconds after which a test gives up what an idle machine does at once; a busy one may take minutes."""


def is_alive(process: psutil.Process | int) -> bool:
    """A zombie is as good as gone; whoever started it may take its time to notice."""
    with contextlib.suppress(psutil.NoSuchProcess):
        found = psutil.Process(process) if isinstance(process, int) else process
        return found.is_running() and bool(found.status() != psutil.STATUS_ZOMBIE)
    return False


def until(
    condition: Callable[[], Any], what: str | Callable[[], str], timeout: float = PATIENCE, pause: float = 0.1
) -> Any:
    """The first true value of the condition; `what` says in vain for what was waited."""
    give_up = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > give_up:
            pytest.fail(f"waited {timeout:g} s in vain: {what if isinstance(what, str) else what()}")
        time.sleep(pause)
    return value


def run_text(words: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """A command that has ended, however it did, with what it printed."""
    return subprocess.run(words, **{"capture_output": True, "text": True, "check": False, **options})


def is_gone(process: psutil.Process | int, seconds: float = PATIENCE) -> bool:
    """Whether it ends within so many seconds: a kill takes its time where many processes want to run."""
    give_up = time.monotonic() + seconds
    while is_alive(process) and time.monotonic() < give_up:
        time.sleep(0.01)
    return not is_alive(process)


def hold(process: psutil.Process, seconds: float = PATIENCE) -> None:
    """Stop it, and wait until it stands still: what is sent to it from then on waits, in whatever order."""
    process.suspend()
    give_up = time.monotonic() + seconds
    while process.status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < give_up, "it was not stopped in time"
        time.sleep(0.01)


def read_pids(path: Path, count: int, seconds: float = PATIENCE) -> list[int]:
    """Wait until so many numbers of processes are in the file, each with its line whole."""
    give_up = time.monotonic() + seconds
    while len(lines := (path.read_text() if path.exists() else "").split("\n")) <= count:
        assert time.monotonic() < give_up, f"{path} does not name {count} processes in time: {lines}"
        time.sleep(0.01)
    return [int(line) for line in lines[:-1]]


def names_below(top: psutil.Process) -> list[str]:
    """The names of all descendants that have one."""
    found = []
    for process in top.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(process.name())
    return found


def oldest_child(top: psutil.Process) -> psutil.Process | None:
    """The one that was started first, of those that live; later ones may be adopted."""
    living = [child for child in top.children() if is_alive(child)]
    return min(living, key=psutil.Process.create_time, default=None)
