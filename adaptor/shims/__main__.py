"""`python -m adaptor.shims NAME ARGUMENT...`: one of the commands."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

from adaptor.shims.real import FOLDER, leave_path, pass_on, real_is_meant

_MODULES = {"sbatch": "submitting", "scancel": "cancelling"}
"""By command, where it is not `asking`."""


def main() -> None:
    """Inside a task, and where it is asked for, the real command runs."""
    name, *arguments = sys.argv[1:]
    folder = Path(os.environ.pop(FOLDER, ""))
    leave_path()
    if real_is_meant(os.environ):
        pass_on(name, arguments)
    # Loaded late: the lines above are all that a task waits for.
    module = import_module(f"adaptor.shims.{_MODULES.get(name, 'asking')}")
    try:
        code = getattr(module, name)(arguments, folder)
        sys.stdout.flush()
    except Exception as error:
        code = _told(error)
    sys.exit(code)


def _told(error: Exception) -> int:
    from adaptor.cli.exit_codes import guarded  # loads click

    def again() -> None:
        raise error

    return guarded(again, ())


if __name__ == "__main__":
    main()
