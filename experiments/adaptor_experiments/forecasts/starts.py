"""Forecasts of the starts of a trace's own jobs, made at the submission from the queue of that moment.

Also how near they came, and how often within their bounds, in the field's measures.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from adaptor.crafting.futures.run_shares import KEPT, Ran, RunShares
from adaptor.forecast.calibration import LOOKS, Raw, kind_of_start
from adaptor.forecast.start import KnownQueue, QueueFutures
from adaptor.model import Estimate, PendingJob, QueueState, RunningJob
from adaptor_experiments.forecasts.binomial import BinomialBound, kind_of
from adaptor_experiments.forecasts.replayed import Case, by_others, by_past
from adaptor_experiments.tables import Runs
from adaptor_simulation.jobs import Jobs, Seconds
from adaptor_simulation.trace_run import load_jobs, replay
from adaptor_simulation.traces.swf import Field
from adaptor_simulation.traces.swf_read import read_trace

Scheduler = Literal["recorded", "conservative", "easy"]
"""Who has started the jobs: the machine's own scheduler, as the trace says, or a simulated one."""

SOON = 600.0  # seconds within which a job starts soon
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
    """Of the drawn futures."""
    bound: float | None
    """The binomial bound; None: too few waits were known."""
    middle: float | None
    """The median of the waits behind it."""

    @property
    def case(self) -> Case:
        ends = Estimate(self.low, self.value, self.high)
        raw = Raw(kind=kind_of_start(ends, 0.0), made=0.0, unit=LOOKS * _LOOK, ends=ends)
        return Case(
            site=f"{self.trace}, {self.scheduler}",
            machine=self.trace,
            instant=float(self.submitted),
            raw=raw,
            came=self.wait,
        )


class Settings(msgspec.Struct, frozen=True):
    """Of the experiment."""

    sample: int
    """Jobs of each trace."""
    seed: int


class Piece(msgspec.Struct, frozen=True):
    """Some jobs of a trace."""

    trace: Path
    scheduler: Scheduler
    settings: Settings
    part: int
    parts: int = _PARTS

    @property
    def name(self) -> str:
        return f"{self.trace.name.split('.')[0]}-{self.scheduler}-{self.part}"


def pieces(traces: Sequence[Path], schedulers: Sequence[Scheduler], settings: Settings) -> list[Piece]:
    return [
        Piece(trace, scheduler, settings, part)
        for trace in traces
        for scheduler in schedulers
        for part in range(_PARTS)
    ]


class History(msgspec.Struct, frozen=True, eq=False):
    """A trace with its schedule."""

    jobs: Jobs
    processors: int
    starts: Seconds
    ends: Seconds
    owners: list[str]


def run_piece(piece: Piece) -> list[Start]:
    """The forecasts for every `parts`-th job of the sample."""
    history = history_of(piece.trace, piece.scheduler)
    chosen = sample_of(history, piece.settings.sample, piece.settings.seed)[piece.part :: piece.parts]
    bounds = bounds_of(history)
    by_end = np.argsort(history.ends, kind="stable")
    ended, ran = history.ends[by_end], _ran(history, by_end)
    name = piece.trace.name.split(".")[0]
    found = []
    for job in chosen:
        now = int(history.jobs.submit[job])
        last = int(np.searchsorted(ended, now, side="right"))
        shares = RunShares(ran[max(0, last - KEPT) : last])
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
        bound, middle = bounds[job]
        found.append(
            Start(
                trace=name,
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
            )
        )
    return found


def history_of(trace: Path, scheduler: Scheduler) -> History:
    """Raises TraceError: the trace cannot be read, or says no waits."""
    loaded, table = load_jobs(trace), read_trace(trace)
    numbers = table.column(Field.NUMBER).astype(np.int64)
    rows = np.searchsorted(numbers, loaded.jobs.number)
    jobs = loaded.jobs
    if scheduler == "recorded":
        starts = jobs.submit + np.maximum(0, table.column(Field.WAIT)[rows]).astype(np.int64)
    else:
        starts = replay(jobs, loaded.processors, scheduler)
    users = table.column(Field.USER)[rows].astype(np.int64).tolist()
    return History(jobs, loaded.processors, starts, starts + jobs.run, [f"{user}" for user in users])


def sample_of(history: History, size: int, seed: int) -> list[int]:
    """Jobs at random, in the order of submission; the first tenth of the trace is only learned from."""
    jobs = len(history.jobs)
    draw = np.random.default_rng(seed)
    later = np.arange(jobs // 10, jobs)
    chosen: list[int] = np.sort(draw.choice(later, min(size, len(later)), replace=False)).tolist()
    return chosen


def queue_at(history: History, job: int) -> tuple[QueueState, dict[str, float]]:
    """The queue at the submission of a job, which comes last in it; the starts of the running jobs."""
    jobs, now = history.jobs, int(history.jobs.submit[job])
    before = np.arange(len(jobs)) < job
    running = np.flatnonzero(before & (history.starts <= now) & (history.ends > now)).tolist()
    waiting = np.flatnonzero(before & (history.starts > now)).tolist()
    limits = {f"{each}": float(jobs.estimate[each]) for each in running}
    queue = QueueState(
        now=float(now),
        processors=history.processors,
        running=tuple(
            RunningJob(
                f"{each}", int(jobs.processors[each]), float(history.starts[each] + jobs.estimate[each])
            )
            for each in running
        ),
        pending=tuple(
            PendingJob(f"{each}", int(jobs.processors[each]), float(jobs.estimate[each]))
            for each in (*waiting, job)
        ),
        owners={f"{each}": history.owners[each] for each in (*running, *waiting)},
        limits=limits,
    )
    return queue, {f"{each}": float(history.starts[each]) for each in running}


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


def _ran(history: History, order: Seconds) -> Sequence[Ran]:
    """All jobs as `RunShares` learns them, in this order."""
    hashed = RunShares().hashed
    names = {owner: hashed(owner) for owner in set(history.owners)}
    run, limit = history.jobs.run.tolist(), history.jobs.estimate.tolist()
    return [
        Ran(names[history.owners[job]], limit[job], min(1.0, run[job] / limit[job])) for job in order.tolist()
    ]


NEAR = {"1 min": 60.0, "10 min": 600.0, "1 h": 3600.0}
"""Errors up to which forecasts are near (Brown et al. 2022, arXiv 2204.13543: one minute)."""

NEAR_HEADINGS = ("trace", "scheduler", "forecast", "n", *(f"within {near}" for near in NEAR), "soon: AUC")


def near_table(rows: Sequence[Start]) -> Iterator[tuple[str, ...]]:
    """Of drawn futures, of the plan by time limits, and of the median of similar jobs' past waits."""
    for (trace, scheduler), some in Runs(rows).by("trace", "scheduler").items():
        soon = [row.wait <= SOON for row in some]
        ways = {
            "drawn": ([row.value for row in some], [row.value + 1e-3 * row.high for row in some]),
            "planned": ([row.planned for row in some],) * 2,
            "past waits": ([math.nan if row.middle is None else row.middle for row in some],) * 2,
        }
        for name, (told, rank) in ways.items():
            errors = [abs(start - row.wait) for start, row in zip(told, some, strict=True)]
            yield (
                *(trace, scheduler, name, str(len(some))),
                *(f"{np.mean([error <= near for error in errors]):.0%}" for near in NEAR.values()),
                f"{auc(rank, soon):.3f}",
            )


COVER_HEADINGS = ("trace", "scheduler", "interval", "held", "median width", "upper held", "median upper")


def cover_table(rows: Sequence[Start]) -> Iterator[tuple[str, ...]]:
    """How often starts lie in their 90 % intervals, and below the upper ends, with the binomial bound."""
    cases = [row.case for row in rows]
    ways = {
        "drawn": [case.raw.ends for case in cases],
        "by other traces": by_others(cases),
        "by the site's past": by_past(cases),
    }
    places = {(row.trace, row.scheduler, row.job): place for place, row in enumerate(rows)}
    for (trace, scheduler), some in Runs(rows).by("trace", "scheduler").items():
        mine = [places[row.trace, row.scheduler, row.job] for row in some]
        for name, ends in ways.items():
            its = [ends[place] for place in mine]
            # Recorded times are whole seconds.
            held = [end.low - 1 <= row.wait <= end.high + 1 for end, row in zip(its, some, strict=True)]
            below = [row.wait <= end.high + 1 for end, row in zip(its, some, strict=True)]
            yield (
                *(trace, scheduler, name, f"{np.mean(held):.1%}"),
                _hours([end.high - end.low for end in its]),
                *(f"{np.mean(below):.1%}", _hours([end.high for end in its])),
            )
        bounded = [(row.wait, row.bound) for row in some if row.bound is not None]
        if bounded:
            below = [wait <= bound for wait, bound in bounded]
            upper = _hours([bound for _, bound in bounded])
            yield trace, scheduler, "binomial bound", "", "", f"{np.mean(below):.1%}", upper


def auc(ranked: Sequence[float], positive: Sequence[bool]) -> float:
    """The chance that a job that starts soon is ranked before one that does not; NaN: all or none do.

    The area under the ROC curve as the Mann-Whitney statistic; what is not ranked comes last.
    """
    those = np.array(positive)
    n, others = int(those.sum()), int((~those).sum())
    if not n or not others:
        return math.nan
    from scipy.stats import rankdata  # takes seconds to import

    ranks = rankdata(np.nan_to_num(np.array(ranked), nan=math.inf, posinf=math.inf))
    return float(1 - (ranks[those].sum() - n * (n + 1) / 2) / (n * others))


def _hours(seconds: Sequence[float]) -> str:
    return f"{np.median(seconds) / 3600:.1f} h"
