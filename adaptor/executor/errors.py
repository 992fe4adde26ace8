"""What a future raises that its function did not raise."""

from __future__ import annotations

from adaptor.errors import AdaptorError


class CallError(AdaptorError):
    """A call ended without an answer, or with an exception that cannot be pickled."""


class RemoteTraceback(Exception):
    """The traceback of a call as text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'
