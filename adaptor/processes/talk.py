"""A long-lived process with pipes for its input and output."""

from __future__ import annotations

import subprocess
from typing import IO


class Talk:
    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        """`errors`: a file that holds what the process writes to its standard error."""
        self.process = process
        self._errors = errors

    def complaint(self) -> str:
        """The last line of its standard error; empty where there is none."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    def end(self) -> None:
        """Close its pipes, which ends it on the other side too, and wait for it."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.kill()
        self.process.wait()
        self._errors.close()
