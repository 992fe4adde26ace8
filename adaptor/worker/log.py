"""The worker's log in the pilot's folder: one line for each thing a person may ask about later."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path


class Log:
    """Lines with local time; on standard error where the file cannot be written."""

    def __init__(self, path: Path) -> None:
        self._handle = 2
        try:
            self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            print(f"{path}: the log cannot be written: {error.strerror}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with contextlib.suppress(OSError):  # a full disk must not end the tasks
            os.write(self._handle, f"{stamp} [{os.getpid()}] {text}\n".encode(errors="replace"))
