"""Questions that only read: answered by the daemon, or from the journal if none is running."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Protocol, TypeVar

import click
import msgspec

from adaptor import views
from adaptor.cli.client import ask, expected
from adaptor.errors import NoDaemonError, UsageError
from adaptor.protocol import control
from adaptor.protocol.state_directory import state_directory

_Kind = TypeVar("_Kind", bound=msgspec.Struct)


class Asker(Protocol):
    """Asks one question, as `ask` and `Reader.get` do."""

    def __call__(self, question: control.Question, kind: type[_Kind]) -> _Kind: ...


_NOTHING: dict[type[msgspec.Struct], msgspec.Struct] = {
    control.GetBags: control.Bags([]),
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


_PAGE = 10_000


def all_tasks(get: Asker, bag: int, states: list[str]) -> Iterator[views.TaskView]:
    """The tasks of a bag in these states (empty: in any), page by page; `get` asks one question."""
    after = -1
    while True:
        page = get(control.GetTasks(bag, states, after, _PAGE), control.Tasks).tasks
        yield from page
        if len(page) < _PAGE:
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
        return ask_journal(question, kind)

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
