"""A Gantt chart of the cluster: pilots in the holes between local jobs; below it a line for each request."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adaptor.units import format_duration
from adaptor_experiments.figures.canvas import below, common_legend, sheet
from adaptor_simulation.files import ReplayError
from adaptor_simulation.grid_job import GridRequest
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.kernels import Array
from adaptor_simulation.what_if import WhatIf

if TYPE_CHECKING:
    from matplotlib.axes import Axes


USED, WASTED = "#009e73", "#f0b47a"
_WAITS, _PLANNED = "#0072b2", "#cfe0ee"
_NAMED = 12  # requests up to which each is labelled
_MOST_LANES = 40  # requests for which the strip grows
_HALF = 0.3  # of the height of what runs, in lines


class Lane(NamedTuple):
    """One request; times in seconds of the trace."""

    waits: tuple[int, int]
    """From its submission until it starts or is withdrawn."""
    planned: tuple[float, float] | None
    """Planned begin and end when it was made; None: the heuristic ignores the queue."""
    runs: tuple[int, int] | None
    """Begin and end of its run; None: it was withdrawn before it started."""
    used: float
    """Share of its time in which tasks ran that finished there."""
    withdrawn: int | None


def lanes(requests: Sequence[GridRequest]) -> list[Lane]:
    """A line for each request that is over, in their order."""
    return [_lane(each, each.ended) for each in requests if each.ended is not None]


def _lane(request: GridRequest, ended: int) -> Lane:
    planned = request.predicted_start
    started = request.started
    return Lane(
        waits=(request.submitted, ended if started is None else started),
        planned=None if planned is None else (planned, planned + request.tr),
        runs=None if started is None else (started, ended),
        used=request.work / request.held if request.held else 0.0,
        withdrawn=ended if started is None else None,
    )


def draw_requests(axes: Axes, requests: Sequence[GridRequest], begin: int, second: int) -> None:
    """Times since `begin`, in units of `second` seconds."""
    drawn = list(enumerate(lanes(requests)))

    def since(time: float) -> float:
        return (time - begin) / second

    def boxes(
        parts: Sequence[tuple[int, tuple[float, float], float, float]], colour: str, label: str
    ) -> None:
        """Place, start and end of each, and the shares of the height between which it is drawn."""
        if parts:  # no bars would have no colour in the legend
            axes.barh(
                [place + _HALF * (1 - 2 * low) for place, _, low, _ in parts],  # the axis grows downwards
                [since(end) - since(start) for _, (start, end), _, _ in parts],
                [-2 * _HALF * (high - low) for _, _, low, high in parts],
                [since(start) for _, (start, _), _, _ in parts],
                align="edge",
                color=colour,
                label=label,
            )

    planned = [(place, lane.planned, 0.0, 1.0) for place, lane in drawn if lane.planned is not None]
    ran = [(place, lane.runs, lane.used) for place, lane in drawn if lane.runs is not None]
    boxes(planned, _PLANNED, "request was planned to run")
    axes.hlines(
        [place for place, _ in drawn],
        [since(lane.waits[0]) for _, lane in drawn],
        [since(lane.waits[1]) for _, lane in drawn],
        colors=_WAITS,
        linewidth=1.2,
        label="request waits",
    )
    boxes([(place, runs, 0.0, used) for place, runs, used in ran], USED, "pilots: used")
    boxes([(place, runs, used, 1.0) for place, runs, used in ran], WASTED, "pilots: wasted")
    gone = [(since(lane.withdrawn), place) for place, lane in drawn if lane.withdrawn is not None]
    axes.plot(
        [time for time, _ in gone],
        [place for _, place in gone],
        "x",
        color=_WAITS,
        label="request is withdrawn",
    )
    axes.set_ylim(len(requests) - 0.4, -0.6)
    if len(requests) <= _NAMED:
        names = [f"{request.p} × {format_duration(request.tr)}" for request in requests]
        axes.set_yticks(range(len(requests)), names, fontsize="small")
    else:
        axes.set_ylabel("requests")


_LOCAL = "0.75"
_UNITS = ((300, 1, "seconds"), (3 * 3600, 60, "minutes"), (3 * 86400, 3600, "hours"))
"""Up to how many seconds in which unit; days beyond."""


class Bar(NamedTuple):
    """A rectangle of the chart."""

    start: int
    end: int
    low: int
    """The first processor."""
    processors: int
    used: float = 1.0
    """The share of its area in which tasks ran that finished."""


def draw_gantt(jobs: Jobs, processors: int, found: list[WhatIf], title: str, path: Path) -> None:
    """One chart per heuristic, from shortly before the bag's submission to the end of the longest.

    The cluster counts processors and does not name them, so the chart deals them out: local jobs from
    the bottom, pilots from the top, in as many pieces as it takes. Below it stands a line for each request:
    when it was to run as planned, waited, ran (used and wasted), and was withdrawn.

    Raises:
        ReplayError: the file cannot be written.
    """
    begin = found[0].result.submitted
    span = max(each.result.turnaround for each in found)
    window = (begin - span // 10, begin + span + span // 20 + 1)
    second, unit = time_unit(window[1] - window[0])
    strips = [0.5 + 0.18 * min(_MOST_LANES, len(each.result.requests)) for each in found]
    heights = [height for strip in strips for height in (3.2, strip)]
    drawn = sheet(11, 1.2 + sum(heights))
    grid = drawn.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)
    plots: list[Axes] = grid[:, 0].tolist()
    for each, chart, strip in zip(found, plots[::2], plots[1::2], strict=True):
        # Of a pilot the lower part, as large as the share that is used, has another colour than the rest.
        local, ours = bars(jobs, processors, each, window)
        _draw_boxes(chart, ((bar, 0.0, 1.0) for bar in local), begin, second, _LOCAL, "local jobs")
        _draw_boxes(chart, ((bar, 0.0, bar.used) for bar in ours), begin, second, USED, "pilots: used")
        _draw_boxes(chart, ((bar, bar.used, 1.0) for bar in ours), begin, second, WASTED, "pilots: wasted")
        chart.set(title=_told(each), ylabel="processors", ylim=(0, processors))
        draw_requests(strip, each.result.requests, begin, second)
        for axes in (chart, strip):
            axes.axvline(0, color="black", linewidth=0.8)
            axes.axvline(each.result.turnaround / second, color="black", linewidth=0.8, linestyle="--")
            axes.set_xlim(*((edge - begin) / second for edge in window))
    plots[-1].set_xlabel(f"{unit} since the bag was submitted (dashed: its last task has ended)")
    below(drawn, *common_legend(plots))
    drawn.suptitle(title, size=13)
    try:
        drawn.savefig(path, dpi=120)
    except (OSError, ValueError) as error:  # ValueError: a suffix that is no format
        raise ReplayError(f"{path}: {error}") from error


def time_unit(span: int) -> tuple[int, str]:
    """The unit in which `span` seconds are easy to read: its length in seconds, and its name."""
    return next(((length, name) for most, length, name in _UNITS if span <= most), (86400, "days"))


def bars(jobs: Jobs, processors: int, found: WhatIf, window: tuple[int, int]) -> tuple[list[Bar], list[Bar]]:
    """The rectangles of local jobs and of pilots that are seen in this window of time."""
    starts, ends = found.starts, found.starts + jobs.run
    seen = np.flatnonzero((starts < window[1]) & (ends > window[0])).tolist()
    items = [(int(starts[job]), int(ends[job]), int(jobs.processors[job]), -1.0) for job in seen]
    items += [
        (request.started, request.ended, request.p, request.work / request.held)
        for request in found.result.requests
        if request.started is not None and request.ended is not None and request.ended > request.started
    ]
    return _dealt(processors, items)


def _dealt(processors: int, items: list[tuple[int, int, int, float]]) -> tuple[list[Bar], list[Bar]]:
    """Give each item the lowest idle processors, or the highest where it is ours and has a share of use."""
    idle = np.ones(processors, np.bool_)
    held: list[tuple[int, int, Array]] = []
    dealt: tuple[list[Bar], list[Bar]] = ([], [])
    for number, (start, end, need, used) in enumerate(sorted(items)):
        while held and held[0][0] <= start:
            idle[heapq.heappop(held)[2]] = True
        free = np.flatnonzero(idle)
        ours = used >= 0
        taken = free[-need:] if ours else free[:need]
        idle[taken] = False
        heapq.heappush(held, (end, number, taken))
        pieces = np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1)
        share = used if ours else 1.0
        dealt[ours].extend(Bar(start, end, int(piece[0]), len(piece), share) for piece in pieces)
    return dealt


def _told(found: WhatIf) -> str:
    result = found.result
    run = sum(request.started is not None for request in result.requests)
    return (
        f"{found.heuristic}: {format_duration(result.turnaround)}; requests: {run} run,"
        f" {len(result.requests) - run} withdrawn; processor-hours used {result.work / 3600:,.1f},"
        f" wasted {result.wasted / 3600:,.1f} ({result.wasted / max(1, result.held):.0%})"
    )


def _draw_boxes(
    axes: Axes, parts: Iterable[tuple[Bar, float, float]], begin: int, second: int, colour: str, label: str
) -> None:
    """Each bar between two shares of its height."""
    from matplotlib.collections import PolyCollection

    corners = [
        [(left, low), (left, high), (right, high), (right, low)]
        for bar, lower, upper in parts
        for left, right in [((bar.start - begin) / second, (bar.end - begin) / second)]
        for low, high in [(bar.low + lower * bar.processors, bar.low + upper * bar.processors)]
    ]
    boxes = PolyCollection(corners, facecolors=colour, edgecolors="white", linewidths=0.2, label=label)
    axes.add_collection(boxes, autolim=False)
