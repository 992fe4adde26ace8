"""Collect the page's data with bounded queries, costly ones rarely; from the journal if no daemon runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import msgspec

from adaptor import api
from adaptor.api import LearnedRuntime
from adaptor.client.asking import NoAnswerError
from adaptor.client.reading import Asker, Reader
from adaptor.dashboard.page import BagDetails, BagRow, FailureRow, Head, Page
from adaptor.dashboard.pictures import PastUse, site_pictures, strips
from adaptor.endings import ending
from adaptor.errors import AdaptorError, NoDaemonError
from adaptor.outputs.finding import Outputs, tail

_MOST_SPANS = 1500
_MOST_BINS, _FEWEST_BINS, _MOST_PARTS = 200, 30, 6000
_AT_A_TIME = 8  # pilots in one question


class Details(msgspec.Struct, frozen=True):
    activity: api.Activity
    details: list[BagDetails]

    def with_learned(
        self, learned: Sequence[LearnedRuntime], pilots: Sequence[api.PilotRecord]
    ) -> list[BagDetails]:
        """The details, with what is known now of their bags."""
        bags = {known.bag for known in learned}
        requests = [pilot for pilot in pilots if not pilot.node]
        # Of several bags, a pilot does not tell for which of them it was asked.
        newest = max(requests, key=lambda pilot: pilot.id, default=None) if len(bags) == 1 else None
        return [
            msgspec.structs.replace(
                each,
                learned=[known for known in learned if known.bag == each.bag],
                walltime=newest.tr if newest is not None and each.bag in bags else None,
            )
            for each in self.details
        ]


def read_activity(ask: Asker, pilots: Sequence[int], most: int = _MOST_SPANS) -> api.Activity:
    """The attempts in these pilots, a few pilots at a time, so that the daemon never stops for long."""
    spans, busy = [], []
    bins = max(_FEWEST_BINS, min(_MOST_BINS, _MOST_PARTS // max(1, len(pilots))))
    for at in range(0, len(pilots), _AT_A_TIME):
        few = list(pilots[at : at + _AT_A_TIME])
        told = ask(api.GetActivity(few, most * len(few) // len(pilots), bins))
        spans += told.spans
        busy += told.busy
    return api.Activity(spans, busy)


def read_details(ask: Asker, bag: api.BagView) -> BagDetails:
    sums = ask(api.GetTaskSums(bag.id))
    outputs = Outputs(bag.output, packed=bag.output_files == "packed")
    return BagDetails(
        bag=bag.id,
        runtimes=sums.runtimes,
        progress=sums.progress,
        failures=[
            FailureRow(
                words=ending(each.exit_code, each.signal, each.error),
                count=each.count,
                task=each.task,
                node=each.node,
                ended=each.ended,
                stderr=tail(outputs.find_one(each.task, each.attempt, "stderr", each.stderr)),
            )
            for each in sums.failures
        ],
        other_failures=sums.other_failures,
        learned=[],
        walltime=None,
    )


RECENT = 3600.0  # seconds for which pilots that have ended are shown
_WHY = 40
_RESTART = 10.0  # seconds that a daemon has for its restart before the journal is read
_DETAILED = 4  # bags whose tasks are shown in sums
_PILOTS = 200
_SHARE = 0.05  # part of the daemon's time that costly queries may take, and that all others may


class Gatherer:
    def __init__(
        self, source: Reader, clock: Callable[[], float], stopwatch: Callable[[], float], title: str
    ) -> None:
        """Args:
        clock: epoch seconds.
        stopwatch: seconds that never go back.
        title: of the page.
        """
        self._source = source
        self._clock = clock
        self._dear = _Rarely(stopwatch)
        self._title = title
        self._past = PastUse()
        self._stopwatch = stopwatch
        self.pause = 0.0
        """Seconds until the page may be gathered again without taking too much of the daemon's time."""
        self._last: Page | None = None
        self._heard: float | None = None
        self._read = False  # whether the last page has what the journal had after the daemon's end
        self._one = threading.Lock()

    def gather(self) -> Page:
        """The page as it is now; waits for another one that is just gathered."""
        return self._gathered(dear=True)

    def gather_soon(self) -> Page:
        """The page without the answers to costly queries, unless they are known."""
        return self._gathered(dear=False)

    def _gathered(self, *, dear: bool) -> Page:
        with self._one:
            self._dear.open = dear
            began, spent = self._stopwatch(), self._dear.spent
            self._last = self._gather()
            self.pause = (self._stopwatch() - began - (self._dear.spent - spent)) / _SHARE
            return self._last

    def _gather(self) -> Page:
        try:
            ask = self._source.live
            daemon = ask(api.GetDaemon())
            seen = ask(api.GetPicture())
            sites = ask(api.GetSites())
            head = Head(now=self._clock(), live=True, title=self._title, daemon=daemon)
            page = self._page(ask, head, sites, seen)
            self._heard, self._read = page.head.now, False
            return page
        except (NoDaemonError, NoAnswerError) as silence:
            return self._kept(silence)
        except AdaptorError as error:
            return self._unchanged(str(error))

    def _kept(self, silence: NoDaemonError | NoAnswerError) -> Page:
        """The journal as the daemon left it, read once: without a daemon it does not change.

        A reader keeps a daemon from opening it, so one that restarts within `_RESTART` seconds goes first.
        """
        last = self._last
        if last is not None and self._read:
            return msgspec.structs.replace(last, head=self._silent(last))
        if isinstance(silence, NoAnswerError):
            return self._unchanged(str(silence))
        if last is not None and self._heard is not None and self._clock() < self._heard + _RESTART:
            return self._unchanged("")
        try:
            nothing = api.Picture([], [], [])
            self._dear.forget()
            self._dear.open = True  # the journal answers at once
            page = self._page(self._source.kept, self._silent(last), last.sites if last else [], nothing)
        except AdaptorError as error:
            return self._unchanged(str(error))
        self._read = True
        head = self._silent(last)
        return msgspec.structs.replace(page, head=head, queues=last.queues if last else [])

    def _silent(self, last: Page | None) -> Head:
        daemon = last.head.daemon if last else None
        return Head(
            now=self._clock(),
            live=False,
            journal=self._read,
            silent_since=self._heard,
            title=self._title,
            daemon=daemon,
        )  # fmt: skip

    def _unchanged(self, problem: str) -> Page:
        head = msgspec.structs.replace(self._silent(self._last), problem=problem)
        if self._last is not None:
            return msgspec.structs.replace(self._last, head=head)
        nothing = api.CreditsView(sites=[], bags=[], prices=[])
        return Page(
            head=head, sites=[], bags=[], queues=[], pilots=[], strips=[], details=[], why=[], credits=nothing
        )  # fmt: skip

    def _page(self, ask: Asker, head: Head, sites: list[api.SiteView], seen: api.Picture) -> Page:
        latest = ask(api.GetLatestBags())
        bags = latest.bags
        pilots = _shown(ask(api.GetPilots(ended=True, since=head.now - RECENT)))
        selector = ",".join(str(bag.id) for bag in bags)
        credits = _credits(ask, selector)
        why = ask(api.GetWhy(limit=_WHY)).lines
        newest = sorted(bags, key=lambda bag: (bag.running > 0, bag.ended is None, bag.id), reverse=True)
        detailed = newest[:_DETAILED]
        found = self._dear.get(lambda: _dear(ask, detailed, pilots))
        for queue in seen.queues:
            self._past.note(queue)
        lines = {line.bag: line for line in credits.bags}
        return Page(
            head=head,
            sites=sites,
            bags=[BagRow(bag=bag, credits=lines.get(bag.id)) for bag in reversed(bags)],
            left_out=latest.left_out,
            queues=site_pictures(seen.queues, self._past, pilots, sites, head.now),
            pilots=pilots,
            strips=strips(found.activity, seen.running, pilots),
            details=found.with_learned(seen.learned, pilots),
            why=why,
            credits=credits,
        )


def _shown(pilots: list[api.PilotRecord]) -> list[api.PilotRecord]:
    """Pilots that run, and the newest of the others: behind a thousand queued ones nothing seemed to run."""
    last = sorted(pilots, key=lambda pilot: (pilot.state == "running", pilot.id))[-_PILOTS:]
    return sorted(last, key=lambda pilot: pilot.id)


def _dear(ask: Asker, bags: list[api.BagView], pilots: list[api.PilotRecord]) -> Details:
    started = [pilot.id for pilot in pilots if pilot.started is not None]
    return Details(read_activity(ask, started), [read_details(ask, bag) for bag in bags])


def _credits(ask: Asker, selector: str) -> api.CreditsView:
    if not selector:
        return api.CreditsView(sites=[], bags=[], prices=[])
    found = ask(api.GetCredits(selector))
    return found if found.in_use else api.CreditsView(sites=[], bags=[], prices=[], in_use=False)


_NOTHING = Details(api.Activity([], []), [])


class _Rarely:
    """Asks again only when that takes no more than a twentieth of the time since the last answer."""

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        self._stopwatch = stopwatch
        self._known: Details | None = None
        self._due = 0.0
        self.spent = 0.0  # seconds for all answers so far
        self.open = True  # whether anything is asked at all

    def forget(self) -> None:
        self._known = None

    def get(self, ask: Callable[[], Details]) -> Details:
        if not self.open:
            return self._known or _NOTHING
        began = self._stopwatch()
        if self._known is None or began >= self._due:
            self._known = ask()
            ended = self._stopwatch()
            self._due = ended + (ended - began) / _SHARE
            self.spent += ended - began
        return self._known
