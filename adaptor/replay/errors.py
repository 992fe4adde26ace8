"""What can be wrong with a trace."""

from __future__ import annotations

from adaptor.errors import UsageError


class TraceError(UsageError):
    """A trace is at fault; the message names the file and, where there is one, the line."""
