"""Forecasts of the start of a request at a site, for users; with a daemon, or by one look without."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from statistics import median

import msgspec

from adaptor.api import GetStart, StartChoice, StartMap, StartRecord, StartView
from adaptor.api.forecasts import JobStanding
from adaptor.config.schema import SiteConfig
from adaptor.crafting.futures.run_shares import MOST, RunShares
from adaptor.daemon.sites import make_backend
from adaptor.errors import AdaptorError, UsageError
from adaptor.forecast.asked_at import beyond, request_at, why_never
from adaptor.forecast.past_waits import PLAN_ALONE
from adaptor.forecast.start import (
    Alternative,
    KnownQueue,
    QueueFutures,
    StartForecast,
    StartRequest,
    unplanned,
)
from adaptor.forecast.start_map import sizes, start_of, walltimes
from adaptor.forecast.start_reasons import reason, remarks
from adaptor.forecast.starts_seen import StartsSeen
from adaptor.journal.database import open_for_reading
from adaptor.journal.pilot_rows import PilotWait, local_runs, pilot_waits
from adaptor.model import QueueState
from adaptor.protocol.state_directory import private_directory, state_directory
from adaptor.reports import JobReport, JobState
from backends.base import TAG_START, Backend, SchedulerError
from backends.ceilings import Ceilings
from backends.observed.state import hidden_processors
from backends.traits import Traits

NEAR = 600.0  # seconds between a start and its plan that do not matter
FEWEST = 5  # starts from which the record of a site is shown
_BY_NO_TAG = f"{TAG_START}nothing."  # no job's tag begins so: a job is asked for by its id alone


class SiteSeen(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a site that a forecast of a start needs."""

    name: str
    queue: QueueState
    shares: RunShares
    look: float  # seconds that the scheduler may take to start what can start
    slot_margin: float = 0.0
    node: int = 1  # processors of a node where only whole nodes are given
    own: Collection[str] = ()  # jobs of ours
    user: str = ""  # whose requests are forecast, by name
    waits: Sequence[PilotWait] = ()  # of our earlier requests
    starts: StartsSeen | None = None
    """The record of the daemon, which this look goes on with; None: none runs."""
    wait_shares: tuple[float, ...] = ()
    ceilings: Mapping[str, Ceilings] = {}  # by partition: what the scheduler allows
    limits: Mapping[str, str] = {}  # by partition: why requests of ours wait there that could start else
    report: JobReport | None = None  # of the job that is asked for, where it is one of our user's

    @property
    def places(self) -> dict[str, QueueState]:
        """State by partition; one without a name if the site has only one."""
        return dict(self.queue.partitions) or {"": self.queue}


def start_views(seen: SiteSeen, asked: GetStart) -> list[StartView]:
    """One for each partition that may be meant; of a job, one."""
    if asked.job:
        return [_of_job(seen, asked.job)]
    view_of = _map if asked.map else _of_request
    found = [
        view_of(seen, name, queue, asked)
        for name, queue in seen.places.items()
        if asked.partition in ("", name)
    ]
    closed = {name: why for name, why in seen.queue.closed.items() if asked.partition in ("", name)}
    found += [unread(seen.name, why, partition=name) for name, why in closed.items()]
    if asked.partition and not found:
        there = ", ".join(name for name in seen.places if name) or "only one"
        raise UsageError(f"site {seen.name} has no partition {asked.partition!r}; it has: {there}")
    return found


def check_question(asked: GetStart) -> None:
    """Raises UsageError: it asks for nothing, for both, or for no possible request."""
    if (asked.request is not None) + bool(asked.job) + asked.map != 1:
        raise UsageError("ask for a request, for a job, or for the map of all requests")
    if asked.request is not None:
        asked.request.check()


def told(asked: GetStart, found: Sequence[StartView]) -> list[StartView]:
    """The earliest first, those without a start last; of a job, where it is known.

    Raises UsageError: no place can ever hold the request, or none knows the job.
    """
    refused = {view.place: view.never or view.reason for view in found if _is_refused(view)}
    if found and len(refused) == len(found):
        what = f"job {asked.job} is not known" if asked.job else "no such request can start"
        raise UsageError(f"{what}: {'; '.join(f'{place}: {why}' for place, why in refused.items())}")
    some = [view for view in found if not asked.job or view.problem or not _is_refused(view)]
    return sorted(some, key=lambda view: math.inf if view.start is None else view.start.value)


def _is_refused(view: StartView) -> bool:
    return bool(view.never) or view.standing == "unknown"


def unread(site: str, problem: str, *, partition: str = "") -> StartView:
    """A site whose queue could not be read."""
    return StartView(site=site, partition=partition, observed=None, problem=problem)


def follow_starts(seen: SiteSeen) -> None:
    """Forecast the starts of some jobs that wait, to be judged when they run."""
    assert seen.starts is not None
    for queue in seen.places.values():
        if queue.pending:
            futures = QueueFutures(_known(seen, queue))
            seen.starts.forecast(queue, futures.job, futures.jobs_beside)


def _of_request(seen: SiteSeen, partition: str, queue: QueueState, asked: GetStart) -> StartView:
    assert asked.request is not None
    at = max(queue.now, asked.at or queue.now)
    request = request_at(asked.request, queue, seen.node)
    view = StartView(
        site=seen.name,
        partition=partition,
        observed=queue.now,
        at=at,
        processors=request.processors,
        tr=request.tr,
        memory=asked.request.memory,
        record=record_of_starts(seen.waits, seen.starts),
    )
    never = why_never(request, queue) or _refused(request, seen.ceilings.get(partition))
    if never:
        return msgspec.structs.replace(view, never=never)
    if why := seen.limits.get(partition):
        return msgspec.structs.replace(view, reason=why)
    futures = QueueFutures(_known(seen, queue))
    found = futures.request(request, at)
    if seen.starts is not None:
        seen.starts.forecast(queue, futures.job, futures.jobs_beside)
    return msgspec.structs.replace(
        _with_forecast(view, found, request, seen, queue, asked.at),
        choices=[_choice(each) for each in futures.alternatives(request, found, at)],
    )


def _map(seen: SiteSeen, partition: str, queue: QueueState, asked: GetStart) -> StartView:
    """Starts of requests of all sizes and walltimes that the place allows."""
    at, ceilings = max(queue.now, asked.at or queue.now), seen.ceilings.get(partition)
    most = queue.processors if ceilings is None else min(queue.processors, ceilings.processors.value)
    view = StartView(
        site=seen.name,
        partition=partition,
        observed=queue.now,
        at=at,
        reason=seen.limits.get(partition, ""),
        remarks=remarks(queue, hidden=hidden_processors(queue), learned=len(seen.shares), at=asked.at),
        record=record_of_starts(seen.waits, seen.starts),
    )
    step = max(seen.node, queue.processor_step)
    if most < step:
        return msgspec.structs.replace(view, reason=view.reason or "no processor is in service there")
    across = sizes(int(most), step)
    down = walltimes(math.inf if ceilings is None else ceilings.seconds.value)
    if view.reason:
        return view
    futures = QueueFutures(_known(seen, queue))
    starts = [[start_of(futures, each, tr, queue, seen.node, at) for each in across] for tr in down]
    return msgspec.structs.replace(view, map=StartMap(processors=across, walltimes=down, starts=starts))


def _refused(request: StartRequest, ceilings: Ceilings | None) -> str:
    if ceilings is None:
        return ""
    seconds, processors = ceilings.seconds, ceilings.processors
    return beyond(request, "seconds", seconds.value, seconds.source) or beyond(
        request, "processors", processors.value, processors.source
    )


def _of_job(seen: SiteSeen, asked: str) -> StartView:
    """Start of a job at the first place where it waits."""
    for partition, queue in seen.places.items():
        job = next((job for job in queue.pending if _means(asked, job.id)), None)
        if job is not None:
            view = StartView(
                site=seen.name,
                partition=partition,
                observed=queue.now,
                job=job.id,
                standing="waits",
                processors=job.processors,
                tr=job.tr,
                scheduler=job.planned_start,
                record=record_of_starts(seen.waits, seen.starts),
            )
            found = QueueFutures(_known(seen, unplanned(queue))).job(job.id)
            return _with_forecast(view, found, None, seen, queue, None)
        if any(_means(asked, job.id) for job in queue.running):
            started = seen.shares.since(asked)
            return StartView(
                site=seen.name,
                partition=partition,
                observed=queue.now,
                job=asked,
                standing="running",
                started=started,
            )
    return _not_in_queue(seen, asked)


def _not_in_queue(seen: SiteSeen, asked: str) -> StartView:
    view = StartView(site=seen.name, observed=seen.queue.now, job=asked, standing="unknown")
    report = seen.report
    if report is None:
        hides = ", as far as the scheduler shows" if hidden_processors(seen.queue) else ""
        return msgspec.structs.replace(view, reason=f"no job {asked} waits or runs there{hides}")
    standing: JobStanding = "running" if report.state is JobState.RUNNING else "ended"
    if report.state is JobState.QUEUED:
        said = report.reason or "it does not say why"
        why = report.never or report.wait.said or f"the scheduler looks for no place for it now ({said})"
        return msgspec.structs.replace(view, standing="held", reason=why, scheduler=report.planned_start)
    return msgspec.structs.replace(view, standing=standing, started=report.start, reason=report.reason)


def _means(asked: str, id: str) -> bool:
    """Whether a job, or an element of an array, is meant."""
    return id == asked or (id.startswith(f"{asked}_") and asked.isdigit()) or id.split(".")[0] == asked


def _known(seen: SiteSeen, queue: QueueState) -> KnownQueue:
    starts = seen.starts
    return KnownQueue(
        queue=queue,
        look=seen.look,
        slot_margin=seen.slot_margin,
        run_shares=seen.shares.known,
        run_shares_by_job=seen.shares.by_job(queue),
        seen_since=seen.shares.seen_since(),
        own=seen.own,
        wait_shares=seen.wait_shares,
        scores=starts.scores if starts is not None else {},
        past=starts.past if starts is not None else None,
        past_weights=starts.past_weights if starts is not None else PLAN_ALONE,
        waiting=starts.waiting(queue) if starts is not None else {},
        asker=seen.shares.hashed(seen.user),
    )


def _with_forecast(
    view: StartView,
    found: StartForecast,
    request: StartRequest | None,
    seen: SiteSeen,
    queue: QueueState,
    at: float | None,
) -> StartView:
    return msgspec.structs.replace(
        view,
        planned=found.planned if math.isfinite(found.planned) else None,
        start=found.start,
        reason=reason(found, request, queue, at),
        remarks=remarks(queue, hidden=hidden_processors(queue), learned=len(seen.shares), at=at),
    )


def _choice(each: Alternative) -> StartChoice:
    assert each.forecast.start is not None
    return StartChoice(
        processors=each.request.processors,
        tr=each.request.tr,
        planned=each.forecast.planned,
        start=each.forecast.start,
    )


def record_of_starts(waits: Iterable[PilotWait], starts: StartsSeen | None = None) -> StartRecord | None:
    """Accuracy for jobs that were seen to wait and start, else for our earlier requests; None: they are too
    few."""
    if starts is not None and starts.starts >= FEWEST:
        return StartRecord(starts=starts.starts, held=starts.held, error=starts.error, right=starts.right)
    errors = [abs(each.started - each.predicted_start) for each in waits if each.started is not None]
    if len(errors) < FEWEST:
        return None
    return StartRecord(
        starts=len(errors), held=sum(error <= NEAR for error in errors), error=median(errors), own=True
    )


# --- by one look, where no daemon runs --------------------------------------------------------------


def read_start(name: str, config: SiteConfig, asked: GetStart) -> list[StartView]:
    """The forecasts of a site whose queue is read now; one that does not answer has a problem instead.

    Raises UsageError: it has no such partition, or no request is like this.
    """
    try:
        backend = make_backend(name, config, private_directory(state_directory()))
        queue = backend.queue_state()  # first: a scheduler that hangs is waited for once
    except SchedulerError as error:
        return [unread(name, str(error))]
    shares, waits = RunShares(), list[PilotWait]()
    with suppress(AdaptorError), closing(open_for_reading(state_directory())) as db:
        shares, waits = RunShares(local_runs(db, name)), pilot_waits(db, name)
    if config.read_history and len(shares) < MOST:
        with suppress(SchedulerError):
            shares.recall(backend.ended_jobs())
    shares.looked(queue)
    seen = SiteSeen(
        name=name,
        queue=queue,
        shares=shares,
        look=look_of(backend),
        slot_margin=float(backend.slot_margin),
        node=whole_node(config),
        waits=waits,
        ceilings=ceilings_of(backend, config),
        report=report_of(backend, asked.job) if asked.job else None,
    )
    return start_views(seen, asked)


def whole_node(config: SiteConfig) -> int:
    """Processors of a node where a site gives only whole nodes; else 1."""
    return (config.processors_per_node or 1) if config.whole_nodes else 1


def look_of(traits: Traits) -> float:
    """Seconds that a scheduler may take to start what can start."""
    return max(1.0, float(traits.slot_margin - traits.time_resolution))


def ceilings_of(backend: Backend, config: SiteConfig) -> dict[str, Ceilings]:
    """Ceilings by partition; none if the scheduler does not say."""
    found = {}
    with suppress(SchedulerError):
        for partition in config.partitions or [""]:
            ceilings = backend.ceilings(partition)
            if ceilings is not None:
                found[partition] = ceilings
    return found


def report_of(backend: Backend, job: str) -> JobReport | None:
    """The scheduler's report on our user's job that its queue does not show; None: it knows no such job."""
    with suppress(SchedulerError):
        found = (report for report in backend.jobs([job], _BY_NO_TAG) if report.id == job)
        return next((report for report in found if report.state is not JobState.GONE), None)
    return None
