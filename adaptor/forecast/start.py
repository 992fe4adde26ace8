"""Forecast starts of requests that any user might make, and of jobs that wait. Pure.

The queue is planned once by the time limits, and again in each of some futures, in which jobs run shares of
their limits (`crafting.futures`; the generator is its own). A new request comes behind all that wait and
takes the first hole that it fits, as by conservative backfilling (De Rose §2). The middle 90 % of its starts,
calibrated by the outcomes of other starts (`calibration`), are the interval. Past waits of like jobs are
mixed in if they came nearer (`past_waits`).
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.fits import usable
from adaptor.crafting.futures.drawn_queue import drawn_jobs, is_job, scaled
from adaptor.crafting.nodes.schedule import has_numba, node_schedule, spans
from adaptor.crafting.nodes.space import Space, chunks_on
from adaptor.crafting.profile import Profile
from adaptor.forecast.calibration import LOOKS, Kind, Raw, calibrated, kind_of_start
from adaptor.forecast.estimate import estimate
from adaptor.forecast.past_waits import PLAN_ALONE, PastWaits, Waiting, Weights, mixed
from adaptor.model import Estimate, QueueState
from adaptor.resources import Need

DRAWS = 60
_JOBS = 20_000  # jobs in all futures together, about: more would take too long
_FEWEST = 8
_MOST_ON_NODES = 500
"""Waiting jobs times nodes beyond which futures are planned by compiled loops, or counted in processors."""
_FEWEST_WAITS = 5  # waits of a site from which they count
_WORTH = 0.2  # of the wait that a smaller request saves at least
_CANDIDATES = 16  # smaller requests that are looked at of each kind, those for the earliest holes
_AT_ONCE = 1.0  # seconds that do not matter


class KnownQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, and what was learned of those who use it."""

    queue: QueueState
    look: float = 60.0
    """Seconds that the scheduler may take to start what can start."""
    slot_margin: float = 0.0
    """Seconds by which a hole is longer than what starts in it."""
    run_shares: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """Shares of their time limits that jobs run, in order; equally likely."""
    run_shares_by_job: Mapping[str, tuple[float, ...]] = {}
    """Shares of their limits by job of the queue whose user has a history."""
    seen_since: Mapping[str, float] = {}
    """First sight of each running job, epoch seconds."""
    own: Collection[str] = ()
    """Jobs that run as long as they may."""
    wait_shares: tuple[float, ...] = ()
    """Real waits of the newest requests as shares of the predicted ones."""
    scores: Mapping[Kind, Sequence[float]] = {}
    """Errors of earlier forecasts by kind, the oldest first."""
    past: PastWaits | None = None
    """Waits of jobs that were seen to start; None: none were seen."""
    past_weights: Weights = PLAN_ALONE
    """Weights of past waits next to the plan."""
    waiting: Mapping[str, Waiting] = {}
    """Facts by which each waiting job of the queue is compared with past waits."""
    asker: str = ""
    """A salted hash of the user whose requests are forecast; empty: not known."""


class StartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that might be made."""

    processors: int
    """Processors in all."""
    tr: float
    """Seconds."""
    unit: Need | None = None
    """Need of each of its equal parts on a node; None: its processors may lie on any nodes."""

    @property
    def step(self) -> int:
        """Processors by which it can be narrower."""
        return 1 if self.unit is None else self.unit.processors


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """Causes for which something does not start at once."""

    waiting: int
    """Jobs that wait too and start before it, by the plan."""
    job: str = ""
    """The job (or reservation) with the most processors that ends when it can start; empty: none does."""
    processors: int = 0
    """Processors that `job` holds."""
    runs: bool = False
    """Whether `job` runs by now."""
    hole: float | None = None
    """Epoch seconds until which its processors are free from now on; None: they are not free."""
    then: str = ""
    """Job or reservation that takes them then; empty: not known."""


class StartForecast(msgspec.Struct, frozen=True, kw_only=True):
    """Forecast of a start; epoch seconds."""

    planned: float
    """Start if all jobs run to their limits and none comes before it; `math.inf`: it never starts."""
    start: Estimate | None
    """The start with its interval; None: no start can be foreseen."""
    before: Before | None
    """Causes of the wait; None: it starts at once."""
    raw: Raw | None = None
    """The interval from which `start` was calibrated; None: there is none."""
    alone: Weights | None = None
    """The start by the plan's futures, by like jobs, by jobs of its shape, each alone; None: not known."""


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """A smaller request that starts sooner."""

    request: StartRequest
    forecast: StartForecast


class QueueFutures:
    """Possible futures of a queue: planned and drawn once, then asked for each request."""

    def __init__(self, known: KnownQueue) -> None:
        self._known = known
        self._queue = known.queue
        self._now = known.queue.now
        self.plan = Availability(known.queue)

    def request(self, asked: StartRequest, at: float | None = None) -> StartForecast:
        """The forecast of a request that is made now, or at a later time (epoch seconds)."""
        at = self._now if at is None else max(at, self._now)
        planned = self._planned(asked, at)
        starts = (
            # In every other future, the queue then looks as it does now.
            at + self._first(profile, asked, self._now) - self._now
            if number % 2 and at > self._now
            else self._first(profile, asked, at)
            for number, profile in enumerate(self._profiles(asked))
        )
        before = None if planned <= at + _AT_ONCE else self._before(planned, asked)
        return _not_before(
            self._certain_start(asked, at), self._forecast(planned, starts, at, before, self._asked(asked))
        )

    def _certain_start(self, asked: StartRequest, at: float) -> float:
        """Epoch seconds before which a request cannot start with any ends of jobs: reservations and other
        holds that are no jobs keep their time."""
        queue = self._queue
        fixed = msgspec.structs.replace(
            queue,
            running=tuple(job for job in queue.running if not is_job(job.id)),
            pending=tuple(job for job in queue.pending if not is_job(job.id)),
        )
        if not (fixed.running or fixed.pending):
            return at
        return self._first(Availability(fixed).profile(asked.unit), asked, at)

    def job(self, id: str) -> StartForecast:
        """The forecast of a job that waits. Raises KeyError: none of this id does."""
        planned = self.plan.starts[id]
        starts = (future.starts[id] for future in self._drawn(id))
        before = None if planned <= self._now + _AT_ONCE else self._before(planned, None, id)
        return self._forecast(planned, starts, self._now, before, self._known.waiting.get(id))

    @property
    def jobs_beside(self) -> int:
        """Jobs whose forecasts cost about as much as that of a request; at least one."""
        return max(1, _JOBS // (self._draws * self._jobs))

    def alternatives(
        self, asked: StartRequest, whole: StartForecast, at: float | None = None
    ) -> list[Alternative]:
        """A shorter and a narrower request that start well before this one, if there are any.

        Args:
            whole: the forecast of this one, by `request`.
        """
        at = self._now if at is None else max(at, self._now)
        planned, start = whole.planned, whole.start
        latest = math.inf
        if start is not None:
            latest = start.value - max(self._known.look, _WORTH * (start.value - at))
        found = []
        for candidates in (self._shorter(asked, at, planned), self._narrower(asked, at, planned)):
            first = islice(candidates, _CANDIDATES)
            sooner = {each: begin for each in first if (begin := self._planned(each, at)) < planned}
            if not sooner:
                continue
            best = min(sooner, key=lambda each: (sooner[each], -each.processors * each.tr))
            forecast = self.request(best, at)
            if forecast.start is not None and forecast.start.value < latest:
                found.append(Alternative(request=best, forecast=forecast))
        return found

    # --- the futures ------------------------------------------------------------------------------

    @property
    def _jobs(self) -> int:
        return 1 + len(self._queue.running) + len(self._queue.pending)

    @property
    def _draws(self) -> int:
        return max(_FEWEST, min(DRAWS, _JOBS // self._jobs))

    @cached_property
    def _futures(self) -> list[Availability]:
        return list(self._drawn())

    def _drawn(self, asked: str = "") -> Iterator[Availability]:
        """Futures of the queue, or of what is planned before a job and of the job.

        It fits a hole by its limit, as the scheduler looks for one, however long it will run.
        """
        known, queue, starts = self._known, self._queue, self.plan.starts
        own, last = {*known.own, asked}, starts[asked] if asked else math.inf
        before = tuple(job for job in queue.pending if starts[job.id] <= last)
        queue = msgspec.structs.replace(queue, pending=before)
        draw = random.Random(1)  # noqa: S311
        for _ in range(self._draws):
            yield _planned_again(
                drawn_jobs(
                    queue, known.run_shares, known.seen_since, own, draw, known.run_shares_by_job, starts
                )
            )

    def _profiles(self, asked: StartRequest) -> Iterator[Profile]:
        """Profile of processors that are free for such requests in each future."""
        most = self._queue.processors if asked.unit is None else processors_for(asked.unit, self._queue)
        for future in self._futures:
            if future.nodes is not None or asked.unit is None:
                yield future.profile(asked.unit)
            else:
                yield scaled(future.profile(), self._queue, most)

    def _asked(self, asked: StartRequest) -> Waiting:
        """Facts by which a request is compared with past waits."""
        owner = self._known.asker
        ahead = sum(each.owner == owner for each in self._known.waiting.values()) if owner else 0
        gpus = asked.unit is not None and asked.unit.gpus > 0
        return Waiting(asked.processors, asked.tr, gpus, owner, ahead)

    def _forecast(
        self, planned: float, drawn: Iterable[float], at: float, before: Before | None, job: Waiting | None
    ) -> StartForecast:
        """The forecast of a start. `drawn`: the starts in the futures, which are not planned where it starts
        at once by the limits."""
        known, shares = self._known, self._known.wait_shares
        # Where a hole is long enough by the limits, the scheduler starts it, whatever ends early then.
        starts = [at] if planned <= at else [min(start, planned) for start in drawn]
        if len(shares) >= _FEWEST_WAITS and planned < math.inf:
            starts = [
                at + (planned - at) * shares[-1 - number % len(shares)] if number % 2 else start
                for number, start in enumerate(starts)
            ]
        plan = estimate(starts)
        if math.isinf(plan.value):
            return StartForecast(planned=planned, start=None, before=before)
        past = known.past.of(job) if known.past is not None and job is not None else None
        found = _later(mixed(_later(plan, -at), past, known.past_weights), at)
        raw = Raw(kind=kind_of_start(found, at), made=at, unit=LOOKS * known.look, ends=found)
        start = calibrated(raw, known.scores.get(raw.kind, ()))
        return StartForecast(
            planned=planned,
            start=start,
            raw=raw,
            before=before,
            alone=None if past is None else (plan.value, at + past.like.value, at + past.shape.value),
        )

    # --- the plan ---------------------------------------------------------------------------------

    def _planned(self, asked: StartRequest, at: float) -> float:
        return self._first(self.plan.profile(asked.unit), asked, at)

    def _first(self, free: Profile, asked: StartRequest, at: float) -> float:
        return free.earliest_start(asked.processors, asked.tr + self._known.slot_margin, at)

    def _shorter(self, asked: StartRequest, at: float, planned: float) -> Iterator[StartRequest]:
        """Requests as wide as this one for the holes before its start, down to an eighth of its time."""
        for duration, processors in self._holes(asked, at, planned):
            tr = _round(duration - self._known.slot_margin)
            if processors >= asked.processors and max(60.0, asked.tr / 8) <= tr < asked.tr:
                yield msgspec.structs.replace(asked, tr=tr)

    def _narrower(self, asked: StartRequest, at: float, planned: float) -> Iterator[StartRequest]:
        """Requests as long as this one on the holes before its start, down to an eighth of its processors."""
        for duration, processors in self._holes(asked, at, planned):
            p = min(processors, asked.processors - 1) // asked.step * asked.step
            if duration >= asked.tr + self._known.slot_margin and p >= max(1, asked.processors / 8):
                yield msgspec.structs.replace(asked, processors=p)

    def _holes(self, asked: StartRequest, at: float, planned: float) -> Iterator[tuple[float, int]]:
        """Seconds and processors of free slots that begin before a time."""
        for slot in self.plan.profile(asked.unit).free_slots():
            start = max(slot.start, at)
            if start < min(planned, slot.end):
                yield slot.end - start, slot.processors

    def _before(self, planned: float, asked: StartRequest | None, id: str = "") -> Before:
        starts = self.plan.starts
        order = [job.id for job in self._queue.pending]
        ahead = frozenset(order[: order.index(id)] if id else order)
        waiting = sum(
            start < planned or (start == planned and job in ahead)
            for job, start in starts.items()
            if is_job(job) and job != id
        )
        jobs = [(job, begin, end) for job, begin, end in spans(self._queue, starts) if job.id != id]
        ending = [job for job, _, end in jobs if abs(end - planned) <= _AT_ONCE]
        found = Before(waiting=waiting)
        if ending:
            job = max(ending, key=lambda each: each.processors)
            runs = any(job is each for each in self._queue.running)
            found = msgspec.structs.replace(found, job=job.id, processors=job.processors, runs=runs)
        hole = self._hole(asked) if asked is not None else None
        if hole is None:
            return found
        then = [job for job, begin, _ in jobs if abs(begin - hole) <= _AT_ONCE]
        name = max(then, key=lambda job: job.processors).id if then else ""
        return msgspec.structs.replace(found, hole=hole, then=name)

    def _hole(self, asked: StartRequest) -> float | None:
        """Epoch seconds until which its processors are free from now on; None: they are not free."""
        free = self.plan.profile(asked.unit)
        times = [time for time, _ in free.steps() if time > self._now]
        short = bisect_left(times, True, key=lambda time: free.minimum(self._now, time) < asked.processors)
        return times[short - 1] if 0 < short < len(times) else None


def _later(when: Estimate, seconds: float) -> Estimate:
    return Estimate(when.low + seconds, when.value + seconds, when.high + seconds)


def _not_before(certain: float, found: StartForecast) -> StartForecast:
    """The forecast without starts before one that is certain to be too early."""
    start = found.start
    if start is None or start.low >= certain or math.isinf(certain):
        return found
    low, value, high = (max(certain, each) for each in (start.low, start.value, start.high))
    return msgspec.structs.replace(found, start=Estimate(low, value, high))


def processors_for(unit: Need, queue: QueueState, *, all_nodes: bool = False) -> int:
    """Processors of all such parts that empty nodes hold: of those in service, or of all."""
    nodes = [node for node in usable(queue) if all_nodes or node.in_service]
    space = Space(msgspec.structs.replace(node, in_service=True) for node in nodes)
    ask = space.of(msgspec.structs.replace(unit, nodes=None))
    held = (chunks_on(space.capacity[node], space.capacity[node], ask) for node in space.lists[ask.among])
    return unit.processors * sum(held)


def unplanned(queue: QueueState) -> QueueState:
    """The queue as its own jobs meet it, without the starts that the scheduler has planned for them.

    Reservations keep theirs. What keeps new requests alone waiting is left out (licences that these take).
    """
    pending = (
        msgspec.structs.replace(job, planned_start=None, parts=()) if is_job(job.id) else job
        for job in queue.pending
    )
    running = (job for job in queue.running if is_job(job.id) or job.id.startswith("reservation "))
    return msgspec.structs.replace(queue, running=tuple(running), pending=tuple(pending))


def _planned_again(queue: QueueState) -> Availability:
    """The availability planned again, on the queue's nodes if that takes little time."""
    few = len(queue.nodes) * len(queue.pending) <= _MOST_ON_NODES
    if queue.nodes and not few and has_numba():
        return Availability(queue, node_schedule(queue, compiled=True))
    return Availability(queue if few else msgspec.structs.replace(queue, nodes=()))


def _round(seconds: float) -> float:
    """Down to what people ask for: whole minutes, from 20 minutes on five, from two hours on a quarter."""
    step = 60.0 if seconds < 1200 else 300.0 if seconds < 7200 else 900.0
    return math.floor(seconds / step) * step if seconds < math.inf else seconds
