"""Where the page's answers come from: the daemon, or the journal while it is silent."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from adaptor.errors import AdaptorError
from adaptor.protocol import control

Kind = TypeVar("Kind", bound=msgspec.Struct)


class SilentError(AdaptorError):
    """The daemon does not answer."""

    def __init__(self, message: str, *, lives: bool) -> None:
        super().__init__(message)
        self.lives = lives
        """Whether it holds the journal all the same, so that nobody else can read it."""


class Ask(Protocol):
    """Asks one question."""

    def __call__(self, question: control.Question, kind: type[Kind]) -> Kind: ...


class Source(Protocol):
    def live(self, question: control.Question, kind: type[Kind]) -> Kind:
        """The daemon's answer. Raises SilentError; AdaptorError: it cannot serve the question."""

    def kept(self, question: control.Question, kind: type[Kind]) -> Kind:
        """The journal's answer. Raises AdaptorError: it has none, or is in use."""
