"""A long-lived process with pipes for its input and output."""

from __future__ import annotations

import select
import subprocess
import time
from collections.abc import Sequence
from typing import IO


class Talk:
    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        """`errors`: a file that holds what the process writes to its standard error."""
        self.process = process
        self._errors = errors

    def read_until(self, end: bytes, timeout: float) -> bytes:
        """Read its output up to and with `end`, not a byte more; return what came before the end or the
        time-out."""
        output, heard, until = self.process.stdout, b"", time.monotonic() + timeout
        while output is not None and not heard.endswith(end):
            ready: Sequence[object] = select.select([output], [], [], max(0.0, until - time.monotonic()))[0]
            byte = output.read(1) if ready else b""
            if not byte:
                break
            heard += byte
        return heard

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
