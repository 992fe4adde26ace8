"""The strip below a Gantt chart: what became of each request, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from adaptor.simulation.grid_job import GridRequest
from adaptor.units import format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USED, WASTED = "#009e73", "#f0b47a"
_WAITS, _PLANNED = "#0072b2", "#cfe0ee"
_NAMED = 12
"""Requests up to which each is labelled."""
_MOST_LANES = 40
"""Requests for which the strip grows."""
_HALF = 0.3
"""Of the height of what runs, in lines."""


class Lane(NamedTuple):
    """One request; times in seconds of the trace."""

    waits: tuple[int, int]
    """From its submission until it starts or is withdrawn."""
    planned: tuple[float, float] | None
    """When it was to run as planned when it was made; None: the heuristic ignores the queue."""
    runs: tuple[int, int] | None
    """None: it was withdrawn before it started."""
    used: float
    """Of what it held, the share in which tasks ran that finished there."""
    withdrawn: int | None


def height(requests: Sequence[GridRequest]) -> float:
    """Inches."""
    return 0.5 + 0.18 * min(_MOST_LANES, len(requests))


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
    planned = [(place, each.planned) for place, each in drawn if each.planned is not None]
    ran = [(place, each.runs, each.used) for place, each in drawn if each.runs is not None]
    scale = _Scale(axes, begin, second)
    scale.boxes([(place, time, 0.0, 1.0) for place, time in planned], _PLANNED, "request was planned to run")
    scale.lines([(place, each.waits) for place, each in drawn], "request waits")
    scale.boxes([(place, runs, 0.0, used) for place, runs, used in ran], USED, "pilots: used")
    scale.boxes([(place, runs, used, 1.0) for place, runs, used in ran], WASTED, "pilots: wasted")
    gone = [(place, each.withdrawn) for place, each in drawn if each.withdrawn is not None]
    axes.plot(
        [scale.since(time) for _, time in gone],
        [place for place, _ in gone],
        "x",
        color=_WAITS,
        label="request is withdrawn",
    )
    axes.set_ylim(len(requests) - 0.4, -0.6)
    if len(requests) <= _NAMED:
        names = [f"{each.p} × {format_duration(each.tr)}" for each in requests]
        axes.set_yticks(range(len(requests)), names, fontsize="small")
    else:
        axes.set_ylabel("requests")


class _Scale(NamedTuple):
    """Draws times as they are shown."""

    axes: Axes
    begin: int
    second: int

    def since(self, time: float) -> float:
        return (time - self.begin) / self.second

    def lines(self, found: Sequence[tuple[int, tuple[int, int]]], label: str) -> None:
        """Place, start and end of each."""
        self.axes.hlines(
            [place for place, _ in found],
            [self.since(start) for _, (start, _) in found],
            [self.since(end) for _, (_, end) in found],
            colors=_WAITS,
            linewidth=1.2,
            label=label,
        )

    def boxes(
        self, found: Sequence[tuple[int, tuple[float, float], float, float]], colour: str, label: str
    ) -> None:
        """Place, start and end of each, and the shares of the height between which it is drawn."""
        if not found:  # no bars would have no colour in the legend
            return
        self.axes.barh(
            [place + _HALF * (1 - 2 * low) for place, _, low, _ in found],  # the axis grows downwards
            [(end - start) / self.second for _, (start, end), _, _ in found],
            [-2 * _HALF * (high - low) for _, _, low, high in found],
            [self.since(start) for _, (start, _), _, _ in found],
            align="edge",
            color=colour,
            label=label,
        )
