"""`python -m adaptor.daemon`: what `adaptor daemon start` starts."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

from adaptor.daemon.lock import LockHeldError
from adaptor.daemon.process import HELD, READY, VANISHED, run
from adaptor.errors import AdaptorError, VanishedSitesError, os_problem


class _Starter:
    """The process that started us, if it waits at the other end of a pipe."""

    def __init__(self, pipe: int | None) -> None:
        self._pipe = pipe

    def tell(self, word: bytes) -> None:
        """Once; it does not wait for a second word."""
        if self._pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, word)
            os.close(self._pipe)
            self._pipe = None


def main() -> int:
    parser = argparse.ArgumentParser(prog="adaptor.daemon")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--config")
    parser.add_argument("--until-idle", action="store_true")
    parser.add_argument("--drop-sites", action="store_true")
    parser.add_argument("--ready-fd", type=int, help="a pipe that gets a byte when the daemon answers")
    arguments = parser.parse_args()
    starter = _Starter(arguments.ready_fd)
    try:
        return run(
            arguments.state,
            arguments.config,
            arguments.until_idle,
            lambda last: starter.tell(READY + (b"" if last is None else os.fsencode(last))),
            drop_sites=arguments.drop_sites,
        )
    except AdaptorError as error:
        kind = VANISHED if isinstance(error, VanishedSitesError) else b""
        starter.tell(HELD if isinstance(error, LockHeldError) else kind + str(error).encode())
        _print(error)
        return error.exit_code
    except OSError as error:  # a full disk, for instance
        starter.tell(os_problem(error).encode())
        _print(os_problem(error))
        return 1
    except Exception as error:
        starter.tell(f"internal error: {type(error).__name__}: {error}".encode())
        raise


def _print(error: object) -> None:
    """For the file that the starter made of stderr; its disk may be full too."""
    with contextlib.suppress(OSError):
        print(f"adaptor: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
