"""`python -m adaptor.shims DIR NAME ARGUMENT...`: one of the commands, where no process serves them yet."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from adaptor.shims.commands import run
from adaptor.shims.real import RealCommand, in_task, leave_path
from adaptor.shims.serving import leave_behind


def main() -> None:
    folder, name, *arguments = sys.argv[1:]
    whole = leave_path()
    if not in_task(os.environ):  # processes that a task leaves behind are ended with it
        leave_behind(folder)
    try:
        code = run(name, arguments, Path(folder))
    except RealCommand as real:
        real.become(whole)
    sys.exit(code)


if __name__ == "__main__":
    main()
