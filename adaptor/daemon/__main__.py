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


def main() -> int:
    parser = argparse.ArgumentParser(prog="adaptor.daemon")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--config")
    parser.add_argument("--until-idle", action="store_true")
    parser.add_argument("--drop-sites", action="store_true")
    parser.add_argument("--ready-fd", type=int, help="a pipe that gets a byte when the daemon answers")
    arguments = parser.parse_args()
    pipe: int | None = arguments.ready_fd

    def tell(word: bytes) -> None:
        """Write a word to the process that started us, if it waits at the other end of a pipe; once."""
        nonlocal pipe
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(pipe, word)
            os.close(pipe)
            pipe = None

    def complain(problem: object) -> None:
        """Into the file that the starter made of stderr; its disk may be full too."""
        with contextlib.suppress(OSError):
            print(f"adaptor: {problem}", file=sys.stderr, flush=True)

    try:
        return run(
            arguments.state,
            arguments.config,
            arguments.until_idle,
            lambda last: tell(READY + (b"" if last is None else os.fsencode(last))),
            drop_sites=arguments.drop_sites,
        )
    except AdaptorError as error:
        kind = VANISHED if isinstance(error, VanishedSitesError) else b""
        tell(HELD if isinstance(error, LockHeldError) else kind + str(error).encode())
        complain(error)
        return error.exit_code
    except OSError as error:  # a full disk, for instance
        tell(os_problem(error).encode())
        complain(os_problem(error))
        return 1
    except Exception as error:
        tell(f"internal error: {type(error).__name__}: {error}".encode())
        raise


if __name__ == "__main__":
    sys.exit(main())
