"""Runs a program for no longer than it may take; a daemon that stops meanwhile lets it go on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

from adaptor.errors import AdaptorError
from adaptor.units import format_duration

_GRACE = 2.0
"""Seconds from SIGTERM to SIGKILL."""
_WORDS = 2000
"""Bytes of its output that are looked at, the last ones."""


async def run_program(command: Sequence[str], environment: Mapping[str, str], limit: float) -> None:
    """Run a program in a session of its own, without input, for `limit` seconds at most.

    Raises:
        AdaptorError: it cannot be started, fails, or was ended with all that it had started.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=dict(environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise AdaptorError(f"{command[0]} cannot be run: {error.strerror}") from error
        try:
            status = await asyncio.wait_for(process.wait(), limit)
        except (TimeoutError, asyncio.TimeoutError) as error:
            await _end(process)
            raise AdaptorError(f"it took longer than {format_duration(limit)} and was ended") from error
        if status:
            raise AdaptorError(f"it ended with status {status}: {_last_words(output)}")


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
        await asyncio.wait_for(process.wait(), _GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _last_words(output: IO[bytes]) -> str:
    """The last line of what it has written."""
    output.seek(max(0, output.seek(0, os.SEEK_END) - _WORDS))
    lines = [line.strip() for line in output.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
