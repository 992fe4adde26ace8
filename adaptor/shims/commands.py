"""The commands by name."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

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
