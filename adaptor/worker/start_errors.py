"""Why an attempt does not start."""

from __future__ import annotations

import errno

SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)


class CannotStartError(Exception):
    """The task cannot be executed; the message says why in one sentence."""


class ShortageError(Exception):
    """The machine cannot start one more process now; the task is not at fault."""
