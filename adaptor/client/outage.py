"""How a daemon that does not answer is waited for: by the command line, programs and executors alike.

One that has answered before, or that lives, may be restarted: it is asked again, at growing intervals, until
patience ends. One that was never there is not waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from adaptor.client.asking import NoAnswerError
from adaptor.errors import NoDaemonError

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds to wait for a daemon that has answered before."""
NOTICE = 2.0
"""Seconds without an answer after which the user is told."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Outage:
    """From the first question without an answer until the daemon answers or patience ends."""

    def __init__(
        self,
        patience: float | None = None,
        *,
        was_there: bool = False,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """Args:
        patience: seconds; None: `PATIENCE`.
        was_there: whether a daemon has answered before.
        say: gets one line, if the outage lasts.
        """
        self._patience = PATIENCE if patience is None else patience
        self._was_there = was_there
        self._say = say
        self._since: float | None = None
        """When it began (monotonic); None: the daemon answers."""
        self._pause = _FIRST_PAUSE
        self._told = False

    def answered(self) -> None:
        """The daemon has answered: the next silence is another outage."""
        self._was_there, self._since, self._pause, self._told = True, None, _FIRST_PAUSE, False

    def pause(self, silence: NoDaemonError | NoAnswerError) -> float:
        """Seconds until the next question. Raises `silence`: patience ends, or there never was a daemon."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        self._was_there = self._was_there or isinstance(silence, NoAnswerError)
        away = now - self._since
        if not self._was_there or away >= self._patience:
            raise silence
        if away >= NOTICE and not self._told:
            self._told = True
            self._say(f"adaptor: the daemon does not answer; waiting up to {self._patience:g} s")
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
        return pause

    def wait_out(self, ask: Callable[[], T]) -> T:
        """The answer, asked for until it comes. Raises NoDaemonError, NoAnswerError, as `pause` does."""
        while True:
            try:
                return ask()
            except (NoDaemonError, NoAnswerError) as silence:
                time.sleep(self.pause(silence))
