"""Why an attempt does not start."""

from __future__ import annotations

import errno

SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)


class CannotStartError(Exception):
    """The task cannot be executed; the message says why in one sentence."""

    def __init__(self, why: str, exit_code: int | None = None) -> None:
        """`exit_code`: a shell's: 127 where there is no such program, 126 where it cannot be executed."""
        super().__init__(why)
        self.exit_code = exit_code


class ShortageError(Exception):
    """The machine cannot start one more process now; the task is not at fault."""
