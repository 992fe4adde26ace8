"""Content of a trace, for `adaptor trace info`."""

from __future__ import annotations

import contextlib
import datetime
import zoneinfo
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from adaptor_simulation.files import TraceError
from adaptor_simulation.traces.normalise import machine_size, normalise
from adaptor_simulation.traces.repairs import NoUsableJobError, Repairs, Rule
from adaptor_simulation.traces.swf import Field, Status, Trace

_QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Distribution of a quantity over the usable jobs."""

    least: float
    quarter: float
    median: float
    three_quarters: float
    p95: float
    most: float
    mean: float


class TraceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A trace in figures; `repairs` says what a simulation would keep. Times in seconds."""

    name: str
    rows: int
    usable_jobs: int
    skipped_lines: int
    computer: str | None
    installation: str | None
    processors: int | None
    """None where nothing is said of it."""
    processors_from: str
    begin: str | None
    """Begin of the trace, ISO 8601 in its own time zone; None: no UnixStartTime."""
    time_zone: str | None
    period: int
    """From the first to the last submission."""
    offered_load: float | None
    """Work asked for over what the machine can do in the period, 0 to 1 and beyond."""
    users: int
    statuses: dict[str, int]
    """Lines per status."""
    repeated_numbers: int
    """Lines whose job number stands in an earlier line."""
    largest_gap: int
    """The longest time without a submission."""
    spreads: dict[str, Spread]
    """Distributions of run time, requested time, processors and time between submissions."""
    repairs: dict[str, int]
    """Jobs touched by each rule when the trace is normalised as it is by default."""
    notes: list[str]


def describe(trace: Trace, processors: int | None = None) -> TraceInfo:
    """Look at a trace; one without a usable job is described, too."""
    size, source = _size(trace, processors)
    try:
        jobs, repairs = normalise(trace, size or 1)
    except NoUsableJobError as empty:
        return _info(trace, size, source, empty.repairs, {}, None)
    between = np.diff(jobs.submit)
    spreads = {
        "run time": _spread(jobs.run),
        "requested time": _spread(jobs.estimate),
        "processors": _spread(jobs.processors),
        "time between submissions": _spread(between if len(between) else np.zeros(1)),
    }
    period = int(jobs.submit[-1] - jobs.submit[0])
    load = jobs.offered_load(size) if size and period else None
    return _info(trace, size, source, repairs, spreads, load)


def _size(trace: Trace, processors: int | None) -> tuple[int | None, str]:
    if processors is not None:
        return processors, "as asked"
    try:
        return machine_size(trace)
    except TraceError as error:
        return None, str(error).removeprefix(f"{trace.name}: ")


def _info(
    trace: Trace,
    size: int | None,
    source: str,
    repairs: Repairs,
    spreads: dict[str, Spread],
    load: float | None,
) -> TraceInfo:
    header = trace.header
    submits = np.sort(trace.column(Field.SUBMIT)[trace.column(Field.SUBMIT) >= 0])
    users = trace.column(Field.USER)
    rows = len(trace)
    return TraceInfo(
        name=trace.name,
        rows=rows,
        usable_jobs=repairs.kept,
        skipped_lines=trace.skipped,
        computer=header.text("Computer"),
        installation=header.text("Installation"),
        processors=size,
        processors_from=source,
        begin=_begin(trace),
        time_zone=_zone_name(trace),
        period=int(submits[-1] - submits[0]) if len(submits) else 0,
        offered_load=load,
        users=len(np.unique(users[users >= 0])),
        statuses=_statuses(trace),
        repeated_numbers=rows - len(np.unique(trace.column(Field.NUMBER))),
        largest_gap=int(np.diff(submits).max(initial=0)),
        spreads=spreads,
        repairs={rule.value: repairs.jobs[rule] for rule in Rule},
        notes=header.notes,
    )


def _begin(trace: Trace) -> str | None:
    epoch = trace.header.number("UnixStartTime")
    if not epoch:
        return None
    zone = _zone(trace) or datetime.timezone.utc
    try:
        return datetime.datetime.fromtimestamp(epoch, zone).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _zone(trace: Trace) -> datetime.tzinfo | None:
    """Time zone of the header; None: it names none that is known."""
    with contextlib.suppress(zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return zoneinfo.ZoneInfo(trace.header.text("TimeZoneString") or "")
    return None


def _zone_name(trace: Trace) -> str | None:
    """The zone in which the begin is written; None: the header names none."""
    name = trace.header.text("TimeZoneString")
    return f"UTC (the zone {name} is not known)" if name and _zone(trace) is None else name


def _statuses(trace: Trace) -> dict[str, int]:
    names = {status.value: status.name.lower().replace("_", " ") for status in Status}
    values, counts = np.unique(trace.column(Field.STATUS), return_counts=True)
    pairs = zip(values.tolist(), counts.tolist(), strict=True)
    return {names.get(int(value), f"status {value:g}"): count for value, count in pairs}


def _spread(values: npt.NDArray[Any]) -> Spread:
    least, quarter, median, three_quarters, p95, most = np.quantile(values, _QUANTILES).tolist()
    return Spread(
        least=least,
        quarter=quarter,
        median=median,
        three_quarters=three_quarters,
        p95=p95,
        most=most,
        mean=float(values.mean()),
    )
