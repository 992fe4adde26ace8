"""Questions that only read: answered by the daemon, or from its journal where none runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from adaptor import api
from adaptor.api.question import A
from adaptor.client.asking import ANSWER_TIMEOUT, SETTLING, Outage, ask, check_own_key
from adaptor.errors import JournalError, NoDaemonError, UsageError
from adaptor.protocol.state_directory import state_directory

PAGE_TIMEOUT = 10.0  # seconds for an answer of the daemon to the live page, or for the metrics
PAGE = 2_000  # tasks that are asked for at a time
_HELD = {"waiting", "running"}


class Asker(Protocol):
    """Asks one question."""

    def __call__(self, question: api.Question[A]) -> A: ...


class Reader:
    """The daemon of the state directory and its journal; `get` asks the daemon until none runs."""

    def __init__(
        self,
        clock: Callable[[], float],
        timeout: float = ANSWER_TIMEOUT,
        *,
        quiet: bool = False,
    ) -> None:
        """Args:
        clock: epoch seconds.
        timeout: seconds for an answer of the daemon.
        quiet: whether it does not say on stderr that it reads the journal.
        """
        self._clock, self._timeout, self._quiet = clock, timeout, quiet
        self.offline = False

    def live(self, question: api.Question[A]) -> A:
        """The daemon's answer. Raises as `ask` does; one that does not answer holds the journal."""
        return ask(question, self._timeout)

    def kept(self, question: api.Question[A]) -> A:
        """The journal's answer. Raises AdaptorError: it has none, or is in use."""
        from adaptor.journal.damage import check_not_lost  # only where no daemon runs
        from adaptor.journal.database import FILE
        from adaptor.journal.queries import answer_offline

        check_own_key("read the journal, and no daemon is running")
        directory: Path = state_directory()
        if question.nothing is not None and not (directory / FILE).exists():
            check_not_lost(directory / FILE)
            nothing: A = question.nothing
            return nothing
        return answer_offline(directory, question, self._clock())

    def get(self, question: api.Question[A]) -> A:
        """Answer of the daemon, or of the journal if no daemon runs. Raises other errors of `live` and
        `kept`."""
        if not self.offline:
            try:
                return self.live(question)
            except NoDaemonError:
                self.offline = True
                if not self._quiet:
                    print("adaptor: no daemon is running; reading the journal", file=sys.stderr)
        try:
            return self.kept(question)
        except JournalError as locked:
            try:
                answer = Outage(SETTLING, was_there=True).wait_out(lambda: self.live(question))
            except NoDaemonError:
                raise locked from None
            self.offline = False
            return answer

    def bags(self, selector: str) -> list[api.BagView]:
        """The bags of a selector, at least one. Raises UsageError: there is no such bag."""
        found = self.get(api.GetBags(selector)).bags
        if not found:
            named = "" if selector in ("last", "all") else f" {selector}"
            raise UsageError(f"there is no bag{named}; submit one: adaptor submit FILE")
        return found

    def bag(self, selector: str) -> api.BagView:
        """The only bag of a selector. Raises UsageError: there is none, or more than one."""
        found = self.bags(selector)
        if len(found) > 1:
            raise UsageError(f"'{selector}' selects {len(found)} bags; select one")
        return found[0]


def all_tasks(
    get: Asker, bag: int, states: list[str], size: int | None = None, after: int = -1
) -> Iterator[api.TaskView]:
    """The tasks of a bag in these states (empty: in any) above the number `after`, page by page of `size`."""
    size = size or PAGE
    # The journal holds a task to be running that waits at its worker; only the daemon knows better.
    asked = sorted({*states, *_HELD}) if _HELD & {*states} else states
    while True:
        page = get(api.GetTasks(bag, asked, after, size))
        yield from (task for task in page if not states or task.state in states)
        if len(page) < size:
            return
        after = page[-1].task
