"""The commands of the shims by name."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

from adaptor.protocol.access import CLIENT_ACCESS
from adaptor.protocol.state_directory import state_directory
from adaptor.shims.real import in_task, tell

MODULES = {
    "sbatch": "submitting",
    "squeue": "asking",
    "scancel": "cancelling",
    "sacct": "asking",
    "scontrol": "asking",
    "sinfo": "asking",
}


def run(name: str, arguments: list[str], folder: Path) -> int:
    """The exit code of a command; its errors are printed.

    Raises:
        RealCommand: the real one is meant.
        SystemExit: and no scheduler has it.
    """
    if in_task(os.environ) and not (state_directory() / CLIENT_ACCESS).exists():
        tell(f"{name}: the daemon of this task is on another machine; there: adaptor status, adaptor cancel")
        return 1
    try:
        module = import_module(f"adaptor.shims.{MODULES[name]}")
        code: int = getattr(module, name)(arguments, folder)
        sys.stdout.flush()
        return code
    except Exception as error:
        return _told(error)


def _told(error: Exception) -> int:
    from adaptor.cli.exit_codes import guarded  # loads click

    def again() -> None:
        raise error

    return guarded(again, ())
