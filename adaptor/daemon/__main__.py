"""`python -m adaptor.daemon`: what `adaptor daemon start` starts."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from adaptor.daemon.process import run
from adaptor.errors import AdaptorError


def _tell_ready(pipe: int | None) -> None:
    if pipe is not None:
        os.write(pipe, b"!")
        os.close(pipe)


def main() -> int:
    parser = argparse.ArgumentParser(prog="adaptor.daemon")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--config")
    parser.add_argument("--until-idle", action="store_true")
    parser.add_argument("--ready-fd", type=int, help="a pipe that is told when the daemon can be asked")
    arguments = parser.parse_args()
    try:
        return run(
            arguments.state, arguments.config, arguments.until_idle, lambda: _tell_ready(arguments.ready_fd)
        )
    except AdaptorError as error:
        print(f"adaptor: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
