"""One possible course of a bag: its tasks in the slots of pilots that are there, and of those to come. Pure.

Tasks are handed out as workers get them: a slot that is free takes the next task, unless the time that a task
is taken to need is longer than what is left of the pilot. What runs at the end of a pilot is cut, waits
again, and is taken to need more. Where the tasks are many, a slot takes several at once, fewer and fewer
towards the end, and where the slots are many, several count as one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Protocol

import msgspec

from adaptor.runtimes.possible import Runtimes

MOST_SLOTS = 16
"""Slots that are followed one by one."""
_CHUNKS = 2
"""Parts in which a slot takes its share of what waits."""
_MOST_STEPS = 600
"""Ends of tasks that are followed; from then on the bag goes on as it did until then."""
_MOST_ASKED = 12
"""How often requests are considered; from then on the bag goes on as it did until then."""
_HIGHER = 1.3
"""By how much the time that a task is taken to need must grow before requests are considered again."""
_OF_A_GROUP = 8
"""Tasks of slots that count as one of which the longest is looked for at the end, at most."""
_LEAVES_AFTER = 60.0
"""Seconds for which a worker waits for a task, about."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that runs, or will. Epoch seconds."""

    start: float
    """When its slots take their first tasks."""
    end: float
    """From when on no task runs in it."""
    slots: int
    site: str = ""
    p: int = 0
    """Processors that it holds there."""
    elapsed: Sequence[float] = ()
    """Seconds for which the tasks that run in it have run."""
    bounds: Sequence[float] = ()
    """Seconds for which each of these ran before, when it was cut; 0: it was not."""
    useful: float = 0.0
    """Seconds of a slot for tasks, as planned."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """What the planner is told when requests are considered."""

    now: float
    uncovered: int
    """Waiting tasks that no pilot covers."""
    runtime: float
    """That a task is taken to need, seconds."""
    in_system: int
    held: Sequence[Lease] = ()
    """The pilots in the system."""


class Supply(Protocol):
    def asked(self, asking: Asking) -> list[Lease]:
        """The pilots of the requests that are made then."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a bag at an instant."""

    now: float
    waiting: int
    """Tasks that were never cut."""
    again: Sequence[float] = ()
    """Seconds for which the others that wait ran before they were cut."""
    beside: float
    """Tasks of other bags that take turns with these, as many as count."""
    needed: float
    """Seconds that a task is taken to need."""
    longest: float
    """Of those that have finished, seconds; 0: none has."""
    possible: float
    """Seconds of the longest task that a pilot can hold: a longer one is given up."""
    most: int
    """Tasks that can run at the same time, at most, by all limits."""
    at_once: int | None = None
    """Tasks that the bag wants to run at the same time at most; None: all."""


def end_of(work: Work, leases: Sequence[Lease], runtimes: Runtimes, supply: Supply) -> float:
    """When the last task ends (epoch seconds); `math.inf`: never, as far as can be seen."""
    return _Course(work, leases, runtimes, supply).run()


class _Pilot:
    __slots__ = ("end", "lease", "live", "slots", "start", "useful")

    def __init__(self, lease: Lease, slots: int) -> None:
        self.start, self.end, self.slots, self.live = lease.start, lease.end, slots, slots
        self.lease, self.useful = lease, lease.useful

    def held(self) -> Lease:
        return msgspec.structs.replace(self.lease, end=self.end)


class _Course:
    def __init__(self, work: Work, leases: Sequence[Lease], runtimes: Runtimes, supply: Supply) -> None:
        self._work, self._runtimes, self._supply = work, runtimes, supply
        self._now = self._last = work.now
        tasks = work.waiting + work.beside
        self._together = max(1, math.ceil(work.most / MOST_SLOTS))
        """Slots that count as one."""
        self._left = tasks / self._together
        self._all = max(1.0, self._left)
        self._needed, self._longest = work.needed, work.longest
        self._odd: list[tuple[float, float]] = []
        """Tasks that were cut: the time that each is taken to need now, and what it takes."""
        for ran in sorted(work.again)[:: self._together]:
            self._wait_again(ran, ran + runtimes.rest(ran))
        self._pilots: list[_Pilot] = []
        self._calendar: list[tuple[float, int, _Pilot | None, float]] = []
        """When a slot of a pilot becomes free, and how long its task ran; without a pilot: requests are
        considered."""
        self._count = self._live = self._asked = self._busy = 0
        self._most_busy = math.inf if work.at_once is None else max(1, work.at_once // self._together)
        self._idle: list[_Pilot] = []
        """Of each slot that has no task because so many run already."""
        self._cuts: dict[int, tuple[float, float]] = {}
        """By number in the calendar, tasks that are cut then: how long they ran, and what they take."""
        for lease in leases:
            self._add(lease)
        self._plan(work.now, None, 0.0)

    def run(self) -> float:
        for _ in range(_MOST_STEPS):
            if not self._calendar:
                return self._last if not self._waits else math.inf
            self._now, number, pilot, ran = heapq.heappop(self._calendar)
            if pilot is None:
                if self._asked == _MOST_ASKED and self._left > self._live:
                    return self._as_until_now()
                self._ask()
                continue
            self._freed(number, pilot, ran)
            while self._idle and self._waits and self._busy < self._most_busy:
                self._take(self._idle.pop())
        return self._as_until_now()

    def _freed(self, number: int, pilot: _Pilot, ran: float) -> None:
        """A slot has no task, or none any more."""
        if number in self._cuts:
            self._busy -= 1
            self._cut(pilot, *self._cuts.pop(number))
            return
        if ran:
            self._busy -= 1
            self._finished(ran)
        if not self._waits:
            self._leave(pilot, self._now)
        elif self._busy >= self._most_busy:
            self._idle.append(pilot)
        else:
            self._take(pilot)

    @property
    def _waits(self) -> bool:
        return self._left > 0 or bool(self._odd)

    def _wait_again(self, ran: float, takes: float) -> None:
        heapq.heappush(self._odd, (min(self._work.possible, max(self._needed, 2 * ran)), takes))

    def _as_until_now(self) -> float:
        if self._left <= 0:
            return math.inf
        done = self._all - self._left
        return self._now + (self._now - self._work.now) * self._left / done if done > 0 else math.inf

    def _plan(self, at: float, pilot: _Pilot | None, ran: float) -> None:
        self._count += 1
        heapq.heappush(self._calendar, (at, self._count, pilot, ran))

    def _add(self, lease: Lease) -> None:
        slots = max(1, round(lease.slots / self._together))
        pilot = _Pilot(lease, slots)
        self._pilots.append(pilot)
        self._live += slots
        begun = list(zip(lease.elapsed, lease.bounds or (0.0,) * len(lease.elapsed), strict=True))
        begun = begun[: lease.slots]
        busy = min(slots, math.ceil(len(begun) / self._together))
        step = len(begun) / busy if busy else 1.0
        for place in range(slots):
            if place < busy:
                first = int(place * step)
                self._begun(pilot, begun[first : max(first + 1, int((place + 1) * step))])
            else:
                self._plan(max(self._now, lease.start), pilot, 0.0)

    def _begun(self, pilot: _Pilot, begun: Sequence[tuple[float, float]]) -> None:
        """Tasks that run in slots that count as one."""
        some = begun[:: max(1, len(begun) // _OF_A_GROUP)] if self._left <= 0 else [begun[len(begun) // 2]]
        rest, ran = max((self._rest(ran, bound), ran) for ran, bound in some)
        self._run(pilot, self._now, rest, ran)

    def _rest(self, ran: float, bound: float) -> float:
        """Of a task that was cut before, it is known that it takes longer than it ran then."""
        least = max(ran, bound)
        return least - ran + self._runtimes.rest(least)

    def _run(self, pilot: _Pilot, start: float, takes: float, before: float = 0.0) -> None:
        """A task that runs, `before`: for so long already."""
        self._busy += 1
        room = pilot.end - start
        if before + takes > self._work.possible:  # it is given up
            takes = max(1e-3, self._work.possible - before)
        if takes <= room:
            self._plan(start + takes, pilot, before + takes)
            return
        self._plan(max(self._now, pilot.end), pilot, 0.0)
        self._cuts[self._count] = before + max(0.0, room), before + takes

    def _cut(self, pilot: _Pilot, ran: float, takes: float) -> None:
        """A task was cut at the end of its pilot."""
        if ran >= 0.95 * self._needed:
            self._needed = min(self._work.possible, max(self._needed, 2 * ran))
        self._wait_again(ran, takes)
        self._leave(pilot, self._now)

    def _finished(self, ran: float) -> None:
        self._last = max(self._last, self._now)
        first = not self._longest
        self._longest = max(self._longest, ran)
        needed = min(self._work.possible, self._longest)
        if needed > _HIGHER * self._needed and self._left > 0:
            self._plan(self._now, None, 0.0)
        if first or needed > self._needed:
            self._needed = needed

    def _take(self, pilot: _Pilot) -> None:
        room = pilot.end - self._now
        if self._odd and self._odd[0][0] <= room:
            self._run(pilot, self._now, heapq.heappop(self._odd)[1])
            return
        if room < self._needed or self._left <= 0:
            self._leave(pilot, self._now)
            return
        chunk = self._left // (_CHUNKS * max(1, self._live))
        chunk = 1.0 if chunk < 1 else chunk
        progress = 1 - self._left / self._all
        if self._left <= self._live:  # the last round: what counts is the longest
            takes = max(self._runtimes.one(progress) for _ in range(min(_OF_A_GROUP, self._together)))
        else:
            takes = self._runtimes.several(chunk, progress)
        if chunk == 1:
            self._left -= 1
            self._run(pilot, self._now, takes)
            return
        # Near the end of the pilot no further task of these is started.
        done = min(chunk, math.floor(chunk * max(0.0, room - self._needed) / max(takes, 1e-9)) + 1)
        takes *= done / chunk
        self._left -= done
        self._longest = max(self._longest, self._runtimes.one(progress))
        self._busy += 1
        self._plan(self._now + min(takes, room), pilot, takes / done)

    def _leave(self, pilot: _Pilot, at: float) -> None:
        """A slot takes no more tasks; when all of a pilot do so, it ends."""
        pilot.live -= 1
        self._live -= 1
        if pilot.live == 0:
            pilot.end = min(pilot.end, max(at, self._now) + _LEAVES_AFTER)
            self._plan(pilot.end, None, 0.0)

    def _ask(self) -> None:
        if not self._waits:
            return
        there = self._pilots = [each for each in self._pilots if each.end > self._now]
        uncovered = max(0.0, self._left) - sum(self._covered(each) for each in there)
        if self._most_busy < math.inf:  # slots beyond what may run are not asked for
            uncovered = min(uncovered, self._most_busy - sum(each.live for each in there))
        needed = self._needed
        if self._odd:
            last = max(need for need, _ in self._odd)
            if not any(self._room(each) >= last for each in there):
                uncovered, needed = max(0.0, uncovered) + len(self._odd), max(needed, last)
        if there and uncovered < 1:
            return
        self._asked += 1
        asking = Asking(
            now=self._now,
            uncovered=max(1, math.ceil(uncovered * self._together)),
            runtime=needed,
            in_system=len(there),
            held=[each.held() for each in there],
        )
        for lease in self._supply.asked(asking):
            self._add(lease)

    def _room(self, pilot: _Pilot) -> float:
        """Seconds that it has for a task."""
        return pilot.useful if pilot.start > self._now else pilot.end - self._now

    def _covered(self, pilot: _Pilot) -> float:
        if pilot.start > self._now:
            return pilot.slots * max(1, math.floor(pilot.useful / self._needed + 1e-6))
        return pilot.live * max(0, math.ceil((pilot.end - self._now) / self._needed) - 1)
