"""Following bags to their end: snapshots, over outages of the daemon."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice

import click
import msgspec

from adaptor import api
from adaptor.cli.options import pilots_in_system
from adaptor.cli.printing import printable
from adaptor.client.asking import ANSWER_TIMEOUT, NoAnswerError, Outage, ask
from adaptor.client.reading import Reader
from adaptor.errors import AdaptorError, NoDaemonError
from adaptor.protocol.state_directory import state_directory

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
SHOWN = 2.0  # seconds between two snapshots on a display
_MOST_BAGS = 1000  # bags that one question can name
_JOB_PAUSE = 2.0  # seconds between two questions while the next job of the daemon waits in the queue


class Overview(msgspec.Struct, frozen=True):
    """The state of some bags at one instant."""

    time: float
    bags: list[api.BagView]
    pilots: list[api.PilotRecord]  # pilots in the system

    @property
    def ended(self) -> bool:
        """True if nothing happens without the user: each bag has ended, or is halted and runs nothing."""
        return all(bag.ended is not None or (bag.halted and not bag.running) for bag in self.bags)


def follow(bags: Sequence[int], deadline: float | None = None, longest: float = SHOWN) -> Iterator[Overview]:
    """A snapshot after each change, until all the bags have ended or paused by themselves, or `deadline`
    (monotonic) is met.

    Two snapshots lie half a second apart or more, and about `longest` seconds at most, since the start of a
    task or of a pilot is no event.

    A daemon that ends by itself once all is done is no error: the journal then has the end. A message names
    one that is stalled.

    Raises:
        NoDaemonError: none runs and the bags have not ended.
        NoAnswerError: one has not answered for too long.
    """
    selector = ",".join(map(str, bags))
    outage = Outage(say=partial(click.echo, err=True))
    pause = _FIRST_PAUSE
    stalled = ""
    while True:
        snapshot: Overview | None
        wait = pause
        try:
            snapshot = Overview(time.time(), ask(api.GetBags(selector)).bags, pilots_in_system(ask))
            before, stalled = stalled, ask(api.GetDaemon()).stalled
            if stalled and not before:
                click.echo(f"adaptor: the daemon is stalled: {printable(stalled)}", err=True)
            outage.answered()
        except (NoDaemonError, NoAnswerError) as silence:
            snapshot = _end_by_journal(selector)
            if snapshot is None:
                wait = _endure(outage, silence, selector)
        if snapshot is not None:
            yield snapshot
            if snapshot.ended:
                return
        left = math.inf if deadline is None else deadline - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(wait, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE)
        if snapshot is not None:
            seconds = max(0.0, min(longest, left - pause))
            known = {bag.id: bag.events for bag in snapshot.bags if bag.ended is None}
            some = dict(islice(known.items(), _MOST_BAGS))
            if some:
                with suppress(AdaptorError):
                    ask(api.GetEvents(some, seconds, most=1), seconds + ANSWER_TIMEOUT)


def _endure(outage: Outage, silence: NoDaemonError | NoAnswerError, selector: str) -> float:
    """Seconds until the next look. Raises NoDaemonError, NoAnswerError: the daemon stays away."""
    try:
        return outage.pause(silence)
    except NoDaemonError:
        from adaptor.config.loading import last_config  # loaded only if no daemon answers
        from adaptor.daemon.jobs.record import read_jobs

        directory = state_directory()
        if read_jobs(directory) is not None:  # the scheduler starts the next one, however long that takes
            outage.say_once(f"adaptor: {silence}")
            return _JOB_PAUSE
        last = last_config(directory)
        again = ["adaptor", "daemon", "start", *(["--config", str(last)] if last is not None else [])]
        raise NoDaemonError(
            f"no daemon is running, so bag {selector} makes no progress; results are kept, and"
            f" `{shlex.join(again)}` continues (its log: {directory / 'daemon.log'})"
        ) from None


def _end_by_journal(selector: str) -> Overview | None:
    """The end of the bags, if the journal can be read and has it."""
    try:
        bags = Reader(time.time).kept(api.GetBags(selector)).bags
    except AdaptorError:  # In use, for instance: a daemon is just starting or just ending.
        return None
    snapshot = Overview(time.time(), bags, [])
    return snapshot if snapshot.ended else None
