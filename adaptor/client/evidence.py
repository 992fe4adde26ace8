"""Evidence of how bags and forecasts went, as one document without names that a site can publish.

Made of what the daemon, or its journal where none runs, says of bags, requests and starts. A name has no
field: all words of the document are those of this module's types. Sites and partitions are numbered in the
order of their first use. Times are whole hours since the first bag or request; durations are seconds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, get_args

import msgspec

from adaptor import api
from adaptor.client.reading import Asker
from adaptor.forecast.calibration import Kind
from adaptor.forecast.estimate import estimate
from adaptor.forecast.kept_starts import JudgedStart
from adaptor.forecast.past_by_shape import shape_of
from adaptor.forecast.record import LATE, Record
from adaptor.model import Estimate, PilotState, UserChange

Numbered = Annotated[str, msgspec.Meta(pattern="^[sp][0-9]+$")]
"""A site (`s1`) or a partition (`p1`) in place of its name."""

_REASONS = {LATE, *get_args(UserChange)}


class BagEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """One bag. Times are seconds, processor time processor-seconds."""

    hour: int
    """Hours from the first time of the document to the submission."""
    state: api.BagState
    tasks: int
    done: int
    failed: int
    retried: int
    cpus: int
    """Processors of each task."""
    mean_runtime: float | None
    requests: int
    donations: int
    paid: float
    used: float
    used_by_others: float
    wasted: float
    gpu_paid: float
    """GPU-seconds."""
    turnaround: float | None
    first_result: float | None
    forecast: ForecastEvidence | None = None


class ForecastEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The first forecast of a bag, which is judged, and what came. Seconds from that forecast on."""

    after: float
    """From the submission to the forecast."""
    finished: int
    tasks: int
    end: Estimate
    ended: float | None
    end_held: bool | None
    cost: Estimate | None
    """Credits."""
    final_cost: float | None
    cost_held: bool | None
    counted: bool


class RequestEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """One request, and what became of it."""

    hour: int
    site: Numbered
    partition: Numbered | None
    p: int
    tr: int
    donated: bool
    state: PilotState
    planned_wait: float | None
    """Seconds from the submission to the start by the plan; None: there was none."""
    wait: float | None
    held: float | None
    """Seconds from its start to its end."""
    used: float
    wasted: float
    reclaim_time: float | None


class StartEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """A job of anyone whose start was forecast. Seconds from the forecast on."""

    kind: Kind
    told: Estimate | None
    """The start as forecast, with its interval."""
    came: float | None
    held: bool
    error: float


class WaitEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Waits of jobs of one shape, of anyone: the same powers of two of processors and seconds."""

    processors: int
    limit: int
    """Seconds."""
    gpus: bool
    waits: int
    middle: Estimate
    """Median, and the middle 90 % of these waits, seconds."""


class StartSums(msgspec.Struct, frozen=True, kw_only=True):
    """The forecasts of starts of one site together."""

    starts: int
    held: int
    error: float | None
    """Median seconds between the forecast and the start."""
    width: float | None
    """Median width of the intervals, seconds."""


class SiteEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of anyone that the daemon saw at a site."""

    site: Numbered
    sums: StartSums
    starts: list[StartEvidence]
    waits: list[WaitEvidence]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    format: Literal[1] = 1
    hours: int
    """Hours from the first bag or request to the last."""
    bags: list[BagEvidence]
    requests: list[RequestEvidence]
    record: Record | None
    """Record of the first forecasts of all bags, forgotten ones included."""
    sites: list[SiteEvidence]


class _Numbers:
    """Numbers in place of names, in the order in which these come."""

    def __init__(self, letter: str) -> None:
        self._letter = letter
        self._known: dict[object, str] = {}

    def of(self, name: object) -> str:
        return self._known.setdefault(name, f"{self._letter}{len(self._known) + 1}")


def gathered(get: Asker) -> Evidence:
    """The evidence of all bags, requests and sites that are kept. Raises what `get` raises."""
    found = get(api.GetBags("all", record=True))
    reports = [get(api.GetReport(bag.id)) for bag in found.bags]
    pilots, starts = get(api.GetPilots(ended=True)), get(api.GetSeenStarts())
    return without_names(reports, pilots, starts, found.record)


def without_names(
    reports: Sequence[api.BagReport],
    pilots: Sequence[api.PilotRecord],
    starts: Sequence[api.SiteStarts],
    record: Record | None = None,
) -> Evidence:
    """The evidence in these answers, without their names."""
    times = [report.bag.submitted for report in reports] + [pilot.submitted for pilot in pilots]
    first = min(times, default=0.0)
    sites, partitions = _Numbers("s"), _Numbers("p")
    return Evidence(
        hours=_hours(max(times, default=first) - first),
        bags=[_bag(report, first) for report in reports],
        requests=[_request(pilot, first, sites, partitions) for pilot in pilots],
        record=None if record is None else _record(record),
        sites=[_site(each, sites) for each in starts],
    )


def _hours(seconds: float) -> int:
    return int(seconds // 3600)


def _record(record: Record) -> Record:
    known = {reason: bags for reason, bags in record.not_counted.items() if reason in _REASONS}
    return msgspec.structs.replace(record, not_counted=known)


def _bag(report: api.BagReport, first: float) -> BagEvidence:
    bag, totals, forecast = report.bag, report.totals, report.first_forecast
    return BagEvidence(
        hour=_hours(bag.submitted - first),
        state=bag.state,
        tasks=bag.tasks,
        done=bag.done,
        failed=bag.failed,
        retried=bag.retried,
        cpus=bag.cpus,
        mean_runtime=_seconds(bag.mean_runtime),
        requests=totals.requests,
        donations=totals.donations,
        paid=round(totals.paid, 1),
        used=round(totals.used, 1),
        used_by_others=round(totals.used_by_others, 1),
        wasted=round(totals.wasted, 1),
        gpu_paid=round(totals.gpu_paid, 1),
        turnaround=_seconds(totals.turnaround),
        first_result=_seconds(totals.first_result),
        forecast=None if forecast is None else _forecast(forecast, bag.submitted),
    )


def _forecast(first: api.FirstForecastView, submitted: float) -> ForecastEvidence:
    return ForecastEvidence(
        after=round(first.made - submitted, 1),
        finished=first.finished,
        tasks=first.tasks,
        end=_from(first.end, first.made),
        ended=_since(first.final_end, first.made),
        end_held=first.end_held,
        cost=first.cost,
        final_cost=first.final_cost,
        cost_held=first.cost_held,
        counted=not first.not_counted,
    )


def _request(pilot: api.PilotRecord, first: float, sites: _Numbers, partitions: _Numbers) -> RequestEvidence:
    return RequestEvidence(
        hour=_hours(pilot.submitted - first),
        site=sites.of(pilot.site),
        partition=partitions.of((pilot.site, pilot.partition)) if pilot.partition else None,
        p=pilot.p,
        tr=pilot.tr,
        donated=bool(pilot.node),
        state=PilotState(pilot.state),
        planned_wait=_since(pilot.predicted_start, pilot.submitted),
        wait=_since(pilot.started, pilot.submitted),
        held=None if pilot.started is None else _since(pilot.ended, pilot.started),
        used=round(pilot.used, 1),
        wasted=round(pilot.wasted, 1),
        reclaim_time=_seconds(pilot.reclaim_time),
    )


def _site(starts: api.SiteStarts, sites: _Numbers) -> SiteEvidence:
    judged = starts.seen.judged
    shapes = defaultdict[tuple[int, int, bool], list[float]](list)
    for past in starts.seen.waits:
        if not past.job.waited:  # once for each job
            shapes[shape_of(past.job.processors, past.job.limit, past.job.gpus)].append(past.wait)
    return SiteEvidence(
        site=sites.of(starts.site),
        sums=StartSums(
            starts=len(judged),
            held=sum(start.held for start in judged),
            error=_median(start.error for start in judged),
            width=_median(start.told.high - start.told.low for start in judged if start.told is not None),
        ),
        starts=[_start(start) for start in judged],
        waits=[
            WaitEvidence(
                processors=2**size,
                limit=2**limit,
                gpus=gpus,
                waits=len(waits),
                middle=_from(estimate(waits), 0.0),
            )
            for (size, limit, gpus), waits in sorted(shapes.items())
        ],
    )


def _start(judged: JudgedStart) -> StartEvidence:
    return StartEvidence(
        kind=judged.kind,
        told=None if judged.told is None else _from(judged.told, 0.0),
        came=_seconds(judged.came),
        held=judged.held,
        error=round(judged.error, 1),
    )


def _median(figures: Iterable[float]) -> float | None:
    found = sorted(figures)
    return _seconds(estimate(found).value) if found else None


def _from(times: Estimate, begin: float) -> Estimate:
    """An interval in seconds since `begin`; an end that is not known stays infinite."""
    low, value, high = (
        round(at - begin, 1) if math.isfinite(at) else at for at in (times.low, times.value, times.high)
    )
    return Estimate(low, value, high)


def _since(at: float | None, begin: float) -> float | None:
    return None if at is None else _seconds(at - begin)


def _seconds(figure: float | None) -> float | None:
    """To a tenth of a second; None: not known."""
    return round(figure, 1) if figure is not None and math.isfinite(figure) else None
