"""How a task ended, in words."""

from __future__ import annotations

import pytest

from adaptor.endings import ending


@pytest.mark.parametrize(
    ("exit_code", "signal", "error", "words"),
    [
        (0, None, None, "exit 0"),
        (3, None, None, "exit 3"),
        (124, None, None, "timed out (exit 124)"),
        (126, None, None, "not executable (exit 126)"),
        (127, None, None, "command not found (exit 127)"),
        (137, None, None, "killed (SIGKILL, often out of memory)"),
        (None, 9, None, "killed (SIGKILL, often out of memory)"),
        (143, None, None, "terminated (SIGTERM)"),
        (None, 11, None, "segmentation fault (SIGSEGV)"),
        (None, 10, None, "ended by SIGUSR1"),
        (None, 250, None, "ended by signal 250"),
        (255, None, None, "exit 255"),
        (None, None, "no such folder", "no such folder"),
        (None, 15, "too long: raise max_tr", "too long: raise max_tr"),
        (137, None, "out of memory: 2G", "out of memory: 2G"),
        (None, None, None, "-"),
    ],
)
def test_how_a_task_ended(exit_code: int | None, signal: int | None, error: str | None, words: str) -> None:
    assert ending(exit_code, signal, error) == words
