"""A Gantt chart of the cluster: pilots in the holes between the jobs of local users."""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from adaptor.figures.canvas import sheet
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.jobs import Jobs
from adaptor.simulation.kernels import Array
from adaptor.simulation.what_if import WhatIf

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bar = tuple[int, int, int, int]
"""Start and end, first processor and how many."""


def draw_gantt(jobs: Jobs, processors: int, found: list[WhatIf], path: Path) -> None:
    """One chart per heuristic, from shortly before the bag's submission to the end of the longest.

    The cluster counts processors and does not name them, so the chart deals them out: local jobs from
    the bottom, pilots from the top, in as many pieces as it takes.

    Raises:
        ReplayError: the file cannot be written.
    """
    begin = found[0].result.submitted
    span = max(each.result.turnaround for each in found)
    window = (begin - span // 10, begin + span + span // 20 + 1)
    drawn = sheet(11, 1 + 3.2 * len(found))
    plots = drawn.subplots(len(found), 1, sharex=True, squeeze=False)[:, 0]
    for axes, each in zip(plots, found, strict=True):
        local, ours = bars(jobs, processors, each, window)
        for boxes, colour, label in ((local, "0.75", "local jobs"), (ours, "C1", "pilots")):
            _draw_bars(axes, boxes, begin, colour, label)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.axvline(each.result.turnaround / 3600, color="black", linewidth=0.8, linestyle="--")
        axes.set(title=each.heuristic, ylabel="processors", ylim=(0, processors))
        axes.set_xlim(*((edge - begin) / 3600 for edge in window))
    plots[-1].set_xlabel("hours since the bag was submitted (dashed: its last task has ended)")
    plots[0].legend(loc="upper right", fontsize="small")
    try:
        drawn.savefig(path, dpi=120)
    except (OSError, ValueError) as error:  # ValueError: a suffix that is no format
        raise ReplayError(f"{path}: {error}") from error


def bars(jobs: Jobs, processors: int, found: WhatIf, window: tuple[int, int]) -> tuple[list[Bar], list[Bar]]:
    """The rectangles of local jobs and of pilots that are seen in this window of time."""
    starts, ends = found.starts, found.starts + jobs.run
    seen = np.flatnonzero((starts < window[1]) & (ends > window[0])).tolist()
    items = [(int(starts[job]), int(ends[job]), int(jobs.processors[job]), False) for job in seen]
    items += [
        (request.started, request.ended, request.p, True)
        for request in found.result.requests
        if request.started is not None and request.ended is not None and request.ended > request.started
    ]
    return _dealt(processors, items)


def _dealt(processors: int, items: list[tuple[int, int, int, bool]]) -> tuple[list[Bar], list[Bar]]:
    """Give each item the lowest idle processors, or the highest where it is ours."""
    idle = np.ones(processors, np.bool_)
    held: list[tuple[int, int, Array]] = []
    dealt: tuple[list[Bar], list[Bar]] = ([], [])
    for number, (start, end, need, ours) in enumerate(sorted(items)):
        while held and held[0][0] <= start:
            idle[heapq.heappop(held)[2]] = True
        free = np.flatnonzero(idle)
        taken = free[-need:] if ours else free[:need]
        idle[taken] = False
        heapq.heappush(held, (end, number, taken))
        pieces = np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1)
        dealt[ours].extend((start, end, int(piece[0]), len(piece)) for piece in pieces)
    return dealt


def _draw_bars(axes: Axes, drawn: list[Bar], begin: int, colour: str, label: str) -> None:
    from matplotlib.collections import PolyCollection

    corners = [
        [(left, low), (left, low + count), (right, low + count), (right, low)]
        for start, end, low, count in drawn
        for left, right in [((start - begin) / 3600, (end - begin) / 3600)]
    ]
    boxes = PolyCollection(corners, facecolors=colour, edgecolors="white", linewidths=0.2, label=label)
    axes.add_collection(boxes, autolim=False)
