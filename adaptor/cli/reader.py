"""Questions that only read: answered by the daemon, or from the journal if none is running."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Protocol, TypeVar

import click
import msgspec

from adaptor import views
from adaptor.client.asking import ask, expected
from adaptor.errors import JournalError, NoDaemonError, UsageError
from adaptor.protocol import control
from adaptor.protocol.state_directory import state_directory

_Kind = TypeVar("_Kind", bound=msgspec.Struct)


class Asker(Protocol):
    """Asks one question, as `ask` and `Reader.get` do."""

    def __call__(self, question: control.Question, kind: type[_Kind]) -> _Kind: ...


_NOTHING: dict[type[msgspec.Struct], msgspec.Struct] = {
    control.GetBags: control.Bags([]),
    control.GetLatestBags: control.Bags([]),
    control.GetPilots: control.Pilots([]),
    control.GetWhy: control.Why([]),
    control.GetCredits: control.Credits(views.CreditsView(sites=[], bags=[], prices=[])),
}
"""The answers where nothing was ever submitted."""


def ask_journal(question: control.Question, kind: type[_Kind]) -> _Kind:
    """Raises JournalError: the journal cannot be read; UsageError: the question is at fault."""
    from adaptor.journal.database import FILE
    from adaptor.journal.queries import answer_offline

    directory = state_directory()
    nothing = _NOTHING.get(type(question))
    if isinstance(nothing, kind) and not (directory / FILE).exists():
        return nothing
    return expected(answer_offline(directory, question, time.time()), kind)


PAGE = 10_000
_HELD = {"waiting", "running"}
_LOOKS = 10
"""For a daemon that starts just now."""
_BETWEEN_LOOKS = 0.3
"""Seconds."""


def all_tasks(get: Asker, bag: int, states: list[str], size: int | None = None) -> Iterator[views.TaskView]:
    """The tasks of a bag in these states (empty: in any), page by page of `size` tasks."""
    size = size or PAGE
    # The journal holds a task to be running that waits at its worker; only the daemon knows better.
    asked = sorted({*states, *_HELD}) if _HELD & {*states} else states
    after = -1
    while True:
        page = get(control.GetTasks(bag, asked, after, size), control.Tasks).tasks
        yield from (task for task in page if not states or task.state in states)
        if len(page) < size:
            return
        after = page[-1].task


class Reader:
    """Asks the daemon; if none is running, says so once on stderr and reads the journal from then on."""

    def __init__(self) -> None:
        self.offline = False

    def get(self, question: control.Question, kind: type[_Kind]) -> _Kind:
        """Raises what `ask` and `ask_journal` raise, save that no daemon runs."""
        if not self.offline:
            try:
                return ask(question, kind)
            except NoDaemonError:
                self.offline = True
                click.echo("adaptor: no daemon is running; reading the journal", err=True)
        try:
            return ask_journal(question, kind)
        except JournalError as locked:
            return self._get_of_a_fresh_daemon(question, kind, locked)

    def _get_of_a_fresh_daemon(
        self, question: control.Question, kind: type[_Kind], locked: JournalError
    ) -> _Kind:
        """A daemon that starts just now holds the journal, and answers soon. Raises `locked`: none does."""
        for _ in range(_LOOKS):
            try:
                answer = ask(question, kind)
            except NoDaemonError:
                time.sleep(_BETWEEN_LOOKS)
            else:
                self.offline = False
                return answer
        raise locked

    def bags(self, selector: str) -> list[views.BagView]:
        """The bags of a selector, at least one.

        Raises:
            UsageError: there is no such bag.
        """
        found = self.get(control.GetBags(selector), control.Bags).bags
        if not found:
            named = "" if selector in ("last", "all") else f" {selector}"
            raise UsageError(f"there is no bag{named}; submit one: adaptor submit FILE")
        return found

    def bag(self, selector: str) -> views.BagView:
        """The only bag of a selector.

        Raises:
            UsageError: there is none, or more than one.
        """
        found = self.bags(selector)
        if len(found) > 1:
            raise UsageError(f"'{selector}' selects {len(found)} bags; select one")
        return found[0]
