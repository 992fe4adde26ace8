"""The commands that stand in front of Slurm's on this node: `srun`, and those that know tasks as jobs."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from adaptor.defaults import FIRST_JOB, SHIM_RULES
from adaptor.private_files import write_atomically
from adaptor.processes.commands import bare_command, first_line
from adaptor.worker.output import CannotStartError

EXECUTABLE = 0o700
_ASKING = ("squeue", "scancel", "sacct", "scontrol")
_SHIM = "adaptor.shims.start"  # by its name: the worker imports nothing of it


class NodeCommands:
    """Commands in a folder that is first in the PATH of tasks; written when the first task needs them."""

    def __init__(self, folder: Path, worker: Mapping[str, str], state: Path) -> None:
        """
        Args:
            folder: where they are written.
            worker: the worker's own environment.
            state: the state directory, where the daemon's files are on this machine too.
        """
        self._folder = folder
        self._pilot = worker.get("SLURM_JOB_ID", "")
        self._state = state
        self._slots: IO[bytes] | None = None
        """The file that the steps of all tasks lock, which has no name and goes with this process; None: no
        command is written yet."""

    def ready(self) -> Path:
        """The folder, with all commands. Raises CannotStartError."""
        if self._slots is None:
            import tempfile

            try:
                slots = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the worker lives)
                self._write_srun(f"/proc/{os.getpid()}/fd/{slots.fileno()}")
                write_executable(self._folder / SHIM_RULES, b"{}")
                for name in _ASKING:
                    write_executable(self._folder / name, self._asking(name).encode())
            except OSError as error:
                raise CannotStartError(f"srun cannot be set up: {error.strerror}") from error
            self._slots = slots
        return self._folder

    def function(self) -> str:
        """`srun` as an exported function of bash: a login shell sets PATH again, a function stays.

        A job that a task submits inherits it, and may outlive this folder.
        """
        program = shlex.quote(str(self._folder / "srun"))
        return f'() {{ if [ -x {program} ]; then {program} "$@"; else command srun "$@"; fi; }}'

    def _write_srun(self, slots: str) -> None:
        program = self._folder / "srun"
        first = first_line(sys.executable)
        source = Path(__file__).with_name("srun.py").read_bytes()
        call = f"\nsys.exit(main(sys.argv[1:], {slots!r}, {self._pilot!r}, {FIRST_JOB}))\n"
        if first:
            write_executable(program, first.encode() + source + call.encode())
            return
        words = shlex.join([sys.executable, "-IS", str(program.with_name("srun.py"))])
        write_executable(program.with_name("srun.py"), source + call.encode())
        write_executable(
            program, f'#!/bin/sh\nexec {words} "$@"\n'.encode()
        )  # loses functions that bash has exported

    def _asking(self, name: str) -> str:
        words = shlex.join(bare_command(_SHIM, str(self._folder), name))
        return f'#!/bin/sh\nADAPTOR_DIR={shlex.quote(str(self._state))} exec {words} "$@"\n'


def write_executable(path: Path, data: bytes) -> None:
    """An executable file of this user's alone. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    write_atomically(path, data, temporary=temporary, mode=EXECUTABLE)
