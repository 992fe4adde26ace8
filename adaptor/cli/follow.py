"""Following bags to their end: snapshots, over outages of the daemon."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

import click
import msgspec

from adaptor import api
from adaptor.cli.selectors import Reader
from adaptor.client.asking import ANSWER_TIMEOUT, NoAnswerError, ask, no_daemon
from adaptor.errors import AdaptorError, NoDaemonError
from adaptor.protocol.state_directory import state_directory

OUTAGE_TIMEOUT = 60.0
"""Seconds to wait for a daemon that has answered before."""
NOTICE = 2.0
"""Seconds without an answer after which the user is told."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
SHOWN = 2.0
"""Seconds between two snapshots that somebody looks at."""
_MOST_BAGS = 1000
"""That one question can name."""


class Overview(msgspec.Struct, frozen=True):
    """The state of some bags at one instant."""

    time: float
    bags: list[api.BagView]
    pilots: list[api.PilotRecord]
    """Those in the system."""

    @property
    def ended(self) -> bool:
        """True if nothing more happens until somebody does something: all have ended, or have paused by
        themselves and run nothing."""
        return all(bag.ended is not None or (bag.halted and not bag.running) for bag in self.bags)


def follow(bags: Sequence[int], deadline: float | None = None, longest: float = SHOWN) -> Iterator[Overview]:
    """A snapshot after each change, until all the bags have ended or paused by themselves, or `deadline`
    (monotonic) is met.

    Two snapshots lie half a second apart or more, and about `longest` seconds at most, since the start of a
    task or of a pilot is no event.

    A daemon that ends by itself once all is done is no error: the journal then has the end.

    Raises:
        NoDaemonError: none runs and the bags have not ended.
        NoAnswerError: one has not answered for too long.
    """
    selector = ",".join(map(str, bags))
    outage = _Outage()
    pause = _FIRST_PAUSE
    while True:
        snapshot = _by_daemon(selector)
        if snapshot is not None:
            outage.over()
        else:
            snapshot = _end_by_journal(selector)
        if snapshot is None:
            outage.endure(selector)
        else:
            yield snapshot
            if snapshot.ended:
                return
        left = math.inf if deadline is None else deadline - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE)
        if snapshot is not None:
            _await_event(snapshot, max(0.0, min(longest, left - pause)))


def _await_event(snapshot: Overview, seconds: float) -> None:
    """Wait until a task of one of the bags has ended; an outage is noticed by the next snapshot."""
    known = {bag.id: bag.events for bag in snapshot.bags if bag.ended is None}
    some = dict(islice(known.items(), _MOST_BAGS))
    if some:
        with suppress(AdaptorError):
            ask(api.GetEvents(some, seconds, most=1), seconds + ANSWER_TIMEOUT)


class _Outage:
    """How long the daemon has not answered: from the first question without an answer."""

    def __init__(self) -> None:
        self._since: float | None = -math.inf
        """When it began (monotonic); None: the daemon answers."""
        self._told = False

    def over(self) -> None:
        self._since, self._told = None, False

    def endure(self, selector: str) -> None:
        """Tell the user once; raises NoDaemonError or NoAnswerError after OUTAGE_TIMEOUT."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        away = now - self._since
        if away >= OUTAGE_TIMEOUT:
            if isinstance(silence := no_daemon(state_directory()), NoAnswerError):
                raise silence
            raise NoDaemonError(
                f"no daemon is running, so bag {selector} makes no progress; results are kept, and"
                f" `{_start_again()}` continues (its log: {state_directory() / 'daemon.log'})"
            )
        if away >= NOTICE and not self._told:
            self._told = True
            click.echo(f"adaptor: the daemon does not answer; waiting up to {OUTAGE_TIMEOUT:g} s", err=True)


def _start_again() -> str:
    """The command that starts a daemon with the configuration of the last one."""
    from adaptor.config.loading import last_config  # loaded only if no daemon answers

    last = last_config(state_directory())
    return shlex.join(["adaptor", "daemon", "start", *(["--config", str(last)] if last is not None else [])])


def _by_daemon(selector: str) -> Overview | None:
    try:
        found = ask(api.GetBags(selector)).bags
        pilots = ask(api.GetPilots())
    except (NoDaemonError, NoAnswerError):
        return None
    return Overview(time.time(), found, pilots)


def _end_by_journal(selector: str) -> Overview | None:
    """The end of the bags, if the journal can be read and has it."""
    try:
        bags = Reader().kept(api.GetBags(selector)).bags
    except AdaptorError:  # In use, for instance: a daemon is just starting or just ending.
        return None
    snapshot = Overview(time.time(), bags, [])
    return snapshot if snapshot.ended else None
