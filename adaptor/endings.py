"""Ends of tasks, in words."""

from __future__ import annotations

import signal

OUT_OF_MEMORY = "out of memory"  # the first words of the error of a task that was killed for lack of memory

_EXITS = {124: "timed out (exit 124)", 126: "not executable (exit 126)", 127: "command not found (exit 127)"}
_SIGNALS = {
    "SIGKILL": "killed (SIGKILL, often out of memory)",
    "SIGTERM": "terminated (SIGTERM)",
    "SIGSEGV": "segmentation fault (SIGSEGV)",
    "SIGABRT": "aborted (SIGABRT)",
    "SIGINT": "interrupted (SIGINT)",
    "SIGXCPU": "out of processor time (SIGXCPU)",
}


def ending(exit_code: int | None, signal_number: int | None, error: str | None = None) -> str:
    """The end of a task, in words: `exit 0`, `exit 3`, `killed (SIGKILL, often out of memory)`.

    An error names the cause of an exit code or signal. By an exit code above 128 a shell reports the signal
    that ended its command.
    """
    if error:
        return error
    if signal_number is not None:
        return _signal(signal_number)
    if exit_code is not None and exit_code > 128 and _signal_name(exit_code - 128):
        return _signal(exit_code - 128)
    if exit_code is None:
        return "-"
    return _EXITS.get(exit_code, f"exit {exit_code}")


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None


def _signal(number: int) -> str:
    name = _signal_name(number)
    return _SIGNALS.get(name or "", f"ended by {name or f'signal {number}'}")
