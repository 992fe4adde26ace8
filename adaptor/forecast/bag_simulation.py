"""One possible course of a bag: its tasks in the slots of pilots that are there, and of those to come. Pure.

Tasks are handed out as workers get them: a slot that is free takes the next task, unless the time that a task
is taken to need is longer than what is left of the pilot. That time is what the bag's own `RuntimeLearner`
says at each site; it learns from the tasks that end and that are cut in this course. If tasks are many, a
slot takes several at once, fewer and fewer towards the end; if slots are many, several count as one, those of
narrow pilots too. Of the last tasks of such slots the longest runs on where the others end.

The pilots are charged by their tariffs, so one course gives the end of the bag and its cost.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from adaptor.forecast.course_parts import CutTask, Event, PilotOfCourse, RunningTasks
from adaptor.forecast.supply import Moment, PilotAhead, Supply, joined
from adaptor.runtimes.known import KnownRuntimes
from adaptor.runtimes.learner import RuntimeLearner
from adaptor.runtimes.possible import Runtimes

MOST_SLOTS = 16  # slots that are followed one by one
_CHUNKS = 2  # parts in which a slot takes its share of what waits
_MOST_STEPS = 600  # ends of tasks that are followed; from then on the bag goes on as it did until then
_MOST_ASKED = 12  # considerations of requests; from then on the bag goes on as it did until then
_PACED = 0.6  # the share of the waiting tasks at which a bag with aims may request again
_OF_A_GROUP = 8  # tasks of slots that count as one of which the longest is looked for at the end, at most
_LEAVES_AFTER = 60.0  # seconds for which a worker waits for a task, about


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a bag at an instant."""

    now: float
    waiting: int
    """Tasks that were never cut."""
    again: Sequence[float] = ()
    """Seconds for which the others that wait ran before they were cut."""
    beside: float = 0.0
    """Tasks of other bags that take turns with these, as many as count."""
    learners: Mapping[str, RuntimeLearner]
    """Learners by site; the course changes them."""
    seen: KnownRuntimes = msgspec.field(default_factory=KnownRuntimes)
    """Runtimes of the bag's tasks at all sites; the course changes them."""
    most: int
    """Tasks that can run at the same time, at most, by all limits."""
    at_once: int | None = None
    """Tasks that the bag wants to run at the same time at most; None: all."""
    idle_costs: bool = False
    """Whether tasks may start at even odds even if few wait."""


class CourseResult(NamedTuple):
    """Result of one course."""

    end: float
    """Epoch seconds of the last result; `math.inf`: never, as far as can be seen."""
    cost: float
    """Millionths of a credit for all pilots that have not ended yet, those that run as a whole."""


def course_result(
    work: Work, pilots: Sequence[PilotAhead], runtimes: Runtimes, supply: Supply
) -> CourseResult:
    """One course of a bag."""
    return _Simulation(work, pilots, runtimes, supply).run()


class _Simulation:
    def __init__(self, work: Work, pilots: Sequence[PilotAhead], runtimes: Runtimes, supply: Supply) -> None:
        self._work, self._runtimes, self._supply = work, runtimes, supply
        self._now = self._last = self._waited = work.now
        self._learners, self._seen = work.learners, work.seen
        self._together = max(1, math.ceil(work.most / MOST_SLOTS))  # slots that count as one
        self._left = (work.waiting + work.beside) / self._together
        self._all = max(1.0, self._left)
        self._needed = {site: learner.estimate for site, learner in self._learners.items()}
        self._even = {site: learner.even for site, learner in self._learners.items()}
        self._cuts: list[CutTask] = []  # tasks that were cut and wait again, as a heap
        self._pilots: list[PilotOfCourse] = []
        self._calendar: list[tuple[float, Event, int, PilotOfCourse | None]] = []
        self._count = self._live = self._asked = self._outlasting = 0
        self._numbers = 0  # of tasks that were cut: they count down, so that none is a number of the bag
        self._running: dict[int, RunningTasks] = {}  # by number in the calendar
        self._most_busy = math.inf if work.at_once is None else max(1, work.at_once // self._together)
        self._idle: list[PilotOfCourse] = []  # of each slot that could not take a task
        self._ask_below = _PACED * self._left if supply.paced else -math.inf
        for ran in sorted(work.again)[:: self._together]:
            self._wait_again(ran, self._known_cut(ran), ran + runtimes.rest(ran))
        self._add_all(pilots)
        self._plan(Event.REQUESTS, work.now)

    def run(self) -> CourseResult:
        for _ in range(_MOST_STEPS):
            if not self._calendar:
                return self._done() if not self._waits else CourseResult(math.inf, math.inf)
            self._now, event, number, pilot = heapq.heappop(self._calendar)
            if self._waits:
                self._waited = self._now
            if event is Event.REQUESTS:
                if self._asked == _MOST_ASKED and self._left > self._live:
                    return self._as_until_now()
                self._ask()
            elif event is Event.TASKS_END:
                if number in self._running:  # its pilot has not ended before
                    self._ended(self._running.pop(number))
            else:
                assert pilot is not None
                self._happens(event, pilot)
            if not self._waits and not self._running:
                return self._done()
            self._ask_idle_slots()
        return self._as_until_now()

    def _happens(self, event: Event, pilot: PilotOfCourse) -> None:
        if event is Event.UNIT_ENDS:
            self._end_unit(pilot)
        elif event is Event.SLOT_STARTS and pilot.live:
            self._free(pilot)
        elif (
            event is Event.PILOT_LEAVES
            and not pilot.outlasting
            and self._now >= min(pilot.idle_since + _LEAVES_AFTER, pilot.end)
        ):
            pilot.end = min(pilot.end, self._now)
            self._plan(Event.REQUESTS, self._now)

    def _done(self) -> CourseResult:
        """The course if no task is left: pilots that have not started are withdrawn, the others have ended
        one by one, each as soon as it was idle and no task waited."""
        end = self._last
        return CourseResult(
            end,
            sum(
                pilot.ahead.charge(min(pilot.end, end, max(pilot.idle_since - pilot.sooner, self._waited)))
                for pilot in self._pilots
            ),
        )

    def _as_until_now(self) -> CourseResult:
        done = self._all - self._left
        if self._left <= 0 or done <= 0:
            return CourseResult(math.inf, math.inf)
        before = self._work.now
        spent = sum(pilot.ahead.charge(min(pilot.end, before)) for pilot in self._pilots)
        cost = sum(pilot.ahead.charge(min(pilot.end, self._now)) for pilot in self._pilots)
        further = self._left / done
        return CourseResult(self._now + (self._now - before) * further, cost + (cost - spent) * further)

    @property
    def _waits(self) -> bool:
        return self._left > 0 or bool(self._cuts)

    def _known_cut(self, ran: float) -> int:
        """The number of a task that was cut before now, where the learners know it by another one."""
        number = self._new_number()
        for learner in self._learners.values():
            if ran <= learner.seen.not_enough:
                learner.cut(number, ran)
        return number

    def _new_number(self) -> int:
        self._numbers -= 1
        return self._numbers

    def _wait_again(self, ran: float, number: int, takes: float, *, outlasts: bool = False) -> None:
        heapq.heappush(self._cuts, CutTask(ran, number, takes, outlasts))

    def _plan(self, event: Event, at: float, pilot: PilotOfCourse | None = None) -> int:
        self._count += 1
        heapq.heappush(self._calendar, (max(self._now, at), event, self._count, pilot))
        return self._count

    def _add_all(self, pilots: Sequence[PilotAhead]) -> None:
        for ahead in joined(pilots, self._together):
            self._add(ahead)

    def _add(self, ahead: PilotAhead) -> None:
        slots = max(1, round(ahead.slots / self._together))
        pilot = PilotOfCourse(ahead, slots)
        self._pilots.append(pilot)
        self._live += slots
        begun = list(zip(ahead.elapsed, ahead.bounds or (0.0,) * len(ahead.elapsed), strict=True))
        begun = begun[: ahead.slots]
        busy = min(slots, math.ceil(len(begun) / self._together))
        step = len(begun) / busy if busy else 1.0
        for place in range(slots):
            if place < busy:
                first = int(place * step)
                self._begun(pilot, begun[first : max(first + 1, int((place + 1) * step))])
            else:
                self._plan(Event.SLOT_STARTS, ahead.start, pilot)
        self._plan_unit(pilot)

    def _plan_unit(self, pilot: PilotOfCourse) -> None:
        """The next time at which it is decided whether a pilot ends with a charging unit."""
        ahead = pilot.ahead
        if math.isinf(ahead.unit):
            return
        units = math.floor((self._now + ahead.lead - ahead.began) / ahead.unit + 1e-9) + 1
        at = ahead.began + max(1, units) * ahead.unit - ahead.lead
        if at < pilot.end:
            self._plan(Event.UNIT_ENDS, at, pilot)

    def _begun(self, pilot: PilotOfCourse, begun: Sequence[tuple[float, float]]) -> None:
        """Tasks that run in slots that count as one."""
        some = begun[:: max(1, len(begun) // _OF_A_GROUP)] if self._left <= 0 else [begun[len(begun) // 2]]
        # Of a task that was cut before, it is known that it takes longer than it ran then.
        least = [max(ran, bound) for ran, bound in some]
        rests = [
            longer - ran + self._runtimes.rest(longer) for (ran, _), longer in zip(some, least, strict=True)
        ]
        rest, ran, bound = max((rest, *task) for rest, task in zip(rests, some, strict=True))
        if pilot.ahead.pilots > 1:
            pilot.sooner = rest - sum(rests) / len(rests)
        number = self._known_cut(bound) if bound else None
        self._run(pilot, self._now - ran, ran + rest, number=number)

    def _run(
        self,
        pilot: PilotOfCourse,
        since: float,
        takes: float,
        *,
        count: float = 1.0,
        number: int | None = None,
        outlasts: bool = False,
    ) -> None:
        """Tasks begin. `longest`: seconds of the longest of all that run in such slots; None: `takes`."""
        end = since + takes
        place = self._plan(Event.TASKS_END, min(end, pilot.end), pilot)
        self._running[place] = RunningTasks(pilot, since, takes, count, number, end > pilot.end, outlasts)
        if outlasts:
            pilot.outlasting += 1
            self._outlasting += 1

    def _ended(self, task: RunningTasks) -> None:
        """A task has ended, or was cut at the end of its pilot; its slot is free, if it counted for one."""
        site, each = task.pilot.ahead.site, task.takes / task.tasks
        finished = task.tasks - task.cut
        if finished > 0:
            self._finished(site, finished, each, task)
        if task.cut:
            self._cut(site, max(0.0, self._now - task.since - finished * each), each, task)
        if task.outlasts:
            task.pilot.outlasting -= 1
            self._outlasting -= 1
            self._may_leave(task.pilot)
        else:
            self._free(task.pilot)

    def _finished(self, site: str, count: float, each: float, task: RunningTasks) -> None:
        self._last = max(self._last, self._now)
        tasks = 1 if task.outlasts else max(1, round(count * self._together))
        longest = each if count == 1 else max(each, self._runtimes.one(1 - self._left / self._all))
        for seen in (self._learners[site].seen, self._seen):
            seen.add_all(tasks, tasks * each, tasks * each * each, longest)
        if task.number is not None:
            for other in self._learners.values():
                other.forget(task.number)
        self._learned(site)
        if self._left < self._ask_below:
            self._ask_below = _PACED * self._left
            self._plan(Event.REQUESTS, self._now)

    def _cut(self, site: str, ran: float, takes: float, task: RunningTasks) -> None:
        number = self._new_number() if task.number is None else task.number
        learner = self._learners[site]
        learner.cut(number, ran)
        if not learner.hopeless(number):
            self._wait_again(ran, number, takes, outlasts=task.outlasts)
        self._learned(site)

    def _learned(self, site: str) -> None:
        learner = self._learners[site]
        needed = self._needed[site] = learner.estimate
        self._even[site] = needed if learner.odds is None else learner.even

    def _free(self, pilot: PilotOfCourse) -> None:
        """A slot has no task, or none any more."""
        if self._took(pilot):
            return
        pilot.live -= 1
        self._live -= 1
        self._idle.append(pilot)
        self._may_leave(pilot)

    def _may_leave(self, pilot: PilotOfCourse) -> None:
        """A pilot without tasks leaves a little later, unless one of its slots gets a task until then."""
        if not pilot.live and not pilot.outlasting:
            pilot.idle_since = self._now
            self._plan(Event.PILOT_LEAVES, min(self._now + _LEAVES_AFTER, pilot.end), pilot)

    def _ask_idle_slots(self) -> None:
        """Idle slots take tasks that were cut elsewhere, or for which less time is known to do, until their
        pilots end."""
        if not self._idle or not self._waits:
            return
        idle, self._idle = self._idle, []
        for pilot in idle:
            if self._took(pilot):
                pilot.live += 1
                self._live += 1
                pilot.idle_since = math.inf
            elif pilot.end > self._now:
                self._idle.append(pilot)

    def _took(self, pilot: PilotOfCourse) -> bool:
        """Whether a slot could take a task."""
        left, site = pilot.end - self._now, pilot.ahead.site
        if left <= 0 or not self._waits or self._busy >= self._most_busy:
            return False
        while self._cuts and self._learners[site].estimate_of(self._cuts[0].number) <= left:
            task = heapq.heappop(self._cuts)
            pilot.sooner = 0.0
            self._run(pilot, self._now, task.takes, number=task.number, outlasts=task.outlasts)
            if not task.outlasts:
                return True
        more_wait = self._left + len(self._cuts) > self._busy
        needed = self._even[site] if more_wait or self._work.idle_costs else self._needed[site]
        if left < needed or self._left <= 0:
            return False
        progress = 1 - self._left / self._all
        if self._together > 1 and self._left <= self._live:
            self._left -= 1
            some = sorted(self._runtimes.one(progress) for _ in range(min(_OF_A_GROUP, self._together)))
            pilot.sooner = (some[-1] - some[len(some) // 2]) * (1 - 1 / pilot.ahead.pilots)
            self._run(pilot, self._now, some[len(some) // 2])
            self._run(pilot, self._now, some[-1], outlasts=True)
            return True
        pilot.sooner = 0.0
        chunk = max(1.0, self._left // (_CHUNKS * max(1, self._live)))
        takes = self._runtimes.several(chunk, progress)
        # Near the end of the pilot no further task of these is started.
        started = min(chunk, math.floor(chunk * max(0.0, left - needed) / max(takes, 1e-9)) + 1)
        self._left -= started
        self._run(pilot, self._now, takes * started / chunk, count=started)
        return True

    @property
    def _slots_of_cuts(self) -> float:
        """Slots that tasks which were cut will take."""
        return sum(1 / self._together if task.outlasts else 1.0 for task in self._cuts)

    @property
    def _busy(self) -> int:
        """Slots that have a task."""
        return len(self._running) - self._outlasting

    def _end_unit(self, pilot: PilotOfCourse) -> None:
        """A charging unit of a pilot ends, and with it the pilot if its tasks cost less elsewhere."""
        if not pilot.live or self._now >= pilot.end:
            return
        mine = {place: task for place, task in self._running.items() if task.pilot is pilot}
        ages = [max(0.0, self._now - task.since) for task in mine.values()]
        if self._supply.goes_on(self._moment(0.0, but=pilot), pilot.ahead, ages):
            self._plan_unit(pilot)
            return
        pilot.end = self._now
        self._live -= pilot.live
        pilot.live = 0
        for place, task in mine.items():
            del self._running[place]
            each = task.takes / task.tasks
            done = min(task.tasks - 1, math.floor((self._now - task.since) / max(each, 1e-9)))
            if done > 0:
                self._finished(pilot.ahead.site, done, each, task)
            self._left += task.tasks - done - 1
            number = self._new_number() if task.number is None else task.number
            self._wait_again(0.0, number, each, outlasts=task.outlasts)
            self._outlasting -= task.outlasts
        pilot.outlasting = 0
        self._plan(Event.REQUESTS, self._now)

    def _ask(self) -> None:
        if not self._waits:
            return
        there = self._pilots_now()
        uncovered = max(0.0, self._left) - sum(self._covered(pilot) for pilot in there)
        if self._most_busy < math.inf:  # slots beyond what may run are not asked for
            uncovered = min(uncovered, self._most_busy - sum(pilot.live for pilot in there))
        if self._cuts:
            last = max(self._cuts).number
            if not any(
                self._useful(pilot) >= self._learners[pilot.ahead.site].estimate_of(last) for pilot in there
            ):
                uncovered = max(0.0, uncovered) + self._slots_of_cuts
        if there and uncovered < 1 and not self._supply.paced:
            return
        self._asked += 1
        self._add_all(self._supply.asked(self._moment(uncovered)))

    def _pilots_now(self) -> list[PilotOfCourse]:
        return [pilot for pilot in self._pilots if pilot.end > self._now]

    def _moment(self, uncovered: float, *, but: PilotOfCourse | None = None) -> Moment:
        starts = [task.since for task in self._running.values() if not task.outlasts]
        seen = msgspec.structs.replace(
            self._seen,
            running=len(starts) * self._together,
            starts=math.fsum(starts) * self._together,
            first_start=min(starts, default=None),
        )
        last = max(self._cuts).number if self._cuts else None
        return Moment(
            now=self._now,
            uncovered=max(1, math.ceil(uncovered * self._together)),
            waiting=math.ceil((max(0.0, self._left) + self._slots_of_cuts) * self._together),
            learners=self._learners,
            longest_cut={
                site: 0.0 if last is None else learner.estimate_of(last)
                for site, learner in self._learners.items()
            },
            seen=seen,
            held=[
                msgspec.structs.replace(pilot.ahead, end=pilot.end)
                for pilot in self._pilots_now()
                if pilot is not but
            ],
        )

    def _useful(self, pilot: PilotOfCourse) -> float:
        """Seconds that it has for a task."""
        return pilot.ahead.useful if pilot.start > self._now else pilot.end - self._now

    def _covered(self, pilot: PilotOfCourse) -> float:
        needed = self._needed[pilot.ahead.site]
        if pilot.start > self._now:
            return pilot.slots * max(1, math.floor(pilot.ahead.useful / needed + 1e-6))
        return pilot.live * max(0, math.ceil((pilot.end - self._now) / needed) - 1)
