"""What can be wrong with a replay."""

from __future__ import annotations

from adaptor.errors import UsageError


class ReplayError(UsageError):
    """What is asked of a replay is impossible; the message says why."""


class TraceError(ReplayError):
    """A trace is at fault; the message names the file and, where there is one, the line."""
