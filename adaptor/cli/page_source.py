"""Where the live page and the metrics get their answers: the daemon, or the journal."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from adaptor.cli.reader import ask_journal
from adaptor.client.asking import NoAnswerError, ask
from adaptor.dashboard.source import SilentError
from adaptor.errors import NoDaemonError
from adaptor.protocol import control

_Kind = TypeVar("_Kind", bound=msgspec.Struct)
_PATIENCE = 10.0
"""Seconds for an answer."""


class StateDirectorySource:
    """Of the state directory that the command line uses."""

    def live(self, question: control.Question, kind: type[_Kind]) -> _Kind:
        """Raises SilentError; AdaptorError: the daemon cannot serve the question."""
        try:
            return ask(question, kind, timeout=_PATIENCE)
        except NoDaemonError as error:
            raise SilentError(str(error), lives=False) from error
        except NoAnswerError as error:
            raise SilentError(str(error), lives=True) from error

    def kept(self, question: control.Question, kind: type[_Kind]) -> _Kind:
        """Raises AdaptorError: the journal has no answer, or is in use."""
        return ask_journal(question, kind)
