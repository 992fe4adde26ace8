"""Forecasts of the starts of a trace's own jobs, made at the submission from the queue of that moment."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import msgspec
import numpy as np

from adaptor.crafting.futures.run_shares import KEPT, RunShares
from adaptor.forecast.calibration import LOOKS, Raw, kind_of_start
from adaptor.forecast.past_by_shape import PastByShape
from adaptor.forecast.past_waits import KEPT as KEPT_WAITS
from adaptor.forecast.past_waits import ByPast, PastWait, PastWaits, Waiting
from adaptor.forecast.start import KnownQueue, QueueFutures
from adaptor.model import Estimate
from adaptor_experiments.forecasts.binomial import BinomialBound, kind_of
from adaptor_experiments.forecasts.history import (
    History,
    Scheduler,
    Span,
    history_of,
    queue_at,
    ran,
    sample_of,
)
from adaptor_experiments.forecasts.replayed import Case
from adaptor_experiments.forecasts.trace_queues import TraceFile

_PARTS = 2  # pieces into which the jobs of a trace are divided
_LOOK = 60.0  # seconds that the schedulers of the traces may take to start what can start


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A forecast of a start and what came; seconds since the submission."""

    trace: str
    scheduler: Scheduler
    job: int
    submitted: int
    """Seconds of the trace."""
    processors: int
    limit: int
    ahead: int
    """Jobs that waited before it."""
    wait: float
    planned: float
    """By the time limits; infinite: never."""
    low: float
    value: float
    high: float
    """High end by the drawn futures."""
    bound: float | None
    """The binomial bound; None: too few waits were known."""
    middle: float | None
    """The median of the waits behind it."""
    shape: float | None = None
    """The median of past waits of jobs of its shape: the floor; None: none were known."""
    past: ByPast | None = None
    """The wait by past ones (`adaptor.forecast.past_waits`); None: too few were known."""

    @property
    def plan(self) -> Estimate:
        """The wait by the futures of the plan."""
        return Estimate(self.low, self.value, self.high)

    @property
    def case(self) -> Case:
        return self.forecast(self.plan)

    def forecast(self, ends: Estimate) -> Case:
        """A forecast of the wait, and what came."""
        raw = Raw(kind=kind_of_start(ends, 0.0), made=0.0, unit=LOOKS * _LOOK, ends=ends)
        return Case(
            site=f"{self.trace}, {self.scheduler}",
            machine=self.trace,
            instant=float(self.submitted),
            raw=raw,
            came=self.wait,
        )


class Settings(msgspec.Struct, frozen=True):
    """Settings of the experiment."""

    sample: int
    """Jobs of each trace."""
    seed: int
    span: Span | None = None
    """Part of the trace in which they are submitted; None: after the first tenth of the jobs."""
    traces: tuple[str, ...] = ()
    """Way of reading each trace, as far as its name does not say it."""


class Piece(msgspec.Struct, frozen=True):
    """Some jobs of a trace."""

    trace: TraceFile
    scheduler: Scheduler
    settings: Settings
    part: int
    parts: int = _PARTS

    @property
    def name(self) -> str:
        return f"{self.trace.name}-{self.scheduler}-{self.part}"


def pieces(traces: Sequence[TraceFile], schedulers: Sequence[Scheduler], settings: Settings) -> list[Piece]:
    return [
        Piece(trace, scheduler, settings, part)
        for trace in traces
        for scheduler in schedulers
        for part in range(_PARTS)
    ]


def run_piece(piece: Piece) -> list[Start]:
    """The forecasts for every `parts`-th job of the sample."""
    history = history_of(piece.trace, piece.scheduler)
    chosen = sample_of(history, piece.settings.sample, piece.settings.seed, piece.settings.span)[
        piece.part :: piece.parts
    ]
    bounds, shapes = bounds_of(history), shapes_of(history)
    seen = past_of(history)
    by_start = np.argsort(history.starts, kind="stable")
    begun = history.starts[by_start]
    by_end = np.argsort(history.ends, kind="stable")
    ended, jobs_ran = history.ends[by_end], ran(history, by_end)
    found = []
    for job in chosen:
        now = int(history.jobs.submit[job])
        last = int(np.searchsorted(ended, now, side="right"))
        shares = RunShares(jobs_ran[max(0, last - KEPT) : last])
        queue, since = queue_at(history, job)
        known = KnownQueue(
            queue=queue,
            look=_LOOK,
            run_shares=shares.known,
            run_shares_by_job=shares.by_job(queue),
            seen_since=since,
        )
        forecast = QueueFutures(known).job(str(job))
        assert forecast.raw is not None  # every job of a trace fits its machine
        raw = forecast.raw.ends
        started = by_start[: int(np.searchsorted(begun, now, side="right"))][-KEPT_WAITS:].tolist()
        bound, middle = bounds[job]
        found.append(
            Start(
                trace=piece.trace.name,
                scheduler=piece.scheduler,
                job=job,
                submitted=now,
                processors=int(history.jobs.processors[job]),
                limit=int(history.jobs.estimate[job]),
                ahead=len(queue.pending) - 1,
                wait=float(history.starts[job] - now),
                planned=forecast.planned - now,
                low=raw.low - now,
                value=raw.value - now,
                high=raw.high - now,
                bound=bound,
                middle=middle,
                shape=shapes[job],
                past=PastWaits([seen[each] for each in started]).of(seen[job].job),
            )
        )
    return found


def bounds_of(history: History) -> list[tuple[float | None, float | None]]:
    """By job: the binomial bound at its submission, and the median of the waits behind it."""
    learned = [BinomialBound() for _ in range(4)]
    waiting: list[tuple[int, int]] = []
    found: list[tuple[float | None, float | None]] = []
    jobs = history.jobs
    kinds = [kind_of(each) for each in jobs.processors.tolist()]
    submits, starts = jobs.submit.tolist(), history.starts.tolist()
    for job, (submit, start) in enumerate(zip(submits, starts, strict=True)):
        while waiting and waiting[0][0] <= submit:
            _, other = heapq.heappop(waiting)
            learned[kinds[other]].started(starts[other] - submits[other], found[other][0])
        kind = learned[kinds[job]]
        found.append((kind.bound, kind.median))
        heapq.heappush(waiting, (start, job))
    return found


def past_of(history: History) -> list[PastWait]:
    """By job: what was known of it at its submission, and its wait."""
    jobs, found = history.jobs, list[PastWait]()
    waiting: dict[str, list[int]] = {}
    waits, starts = history.waits.tolist(), history.starts.tolist()
    shapes = zip(jobs.processors.tolist(), jobs.estimate.tolist(), jobs.submit.tolist(), strict=True)
    for job, (processors, limit, submit) in enumerate(shapes):
        owner = history.owners[job]
        own = waiting[owner] = [start for start in waiting.get(owner, []) if start > submit]
        seen = Waiting(processors, float(limit), owner=owner, ahead=len(own) if owner else 0)
        found.append(PastWait(seen, float(waits[job])))
        own.append(starts[job])
    return found


def shapes_of(history: History) -> list[float | None]:
    """By job: the median of the past waits of its shape at its submission; None: none were known."""
    past, waiting, found = PastByShape(), list[tuple[int, int]](), list[float | None]()
    jobs = history.jobs
    waits, starts = history.waits.tolist(), history.starts.tolist()
    shapes = list(zip(jobs.processors.tolist(), jobs.estimate.tolist(), strict=True))
    for job, submit in enumerate(jobs.submit.tolist()):
        while waiting and waiting[0][0] <= submit:
            _, other = heapq.heappop(waiting)
            past.started(*shapes[other], wait=waits[other])
        like = past.like(*shapes[job])
        found.append(None if like is None else like.value)
        heapq.heappush(waiting, (starts[job], job))
    return found
