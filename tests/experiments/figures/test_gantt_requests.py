"""What the strip below a Gantt chart shows of each request."""

from __future__ import annotations

import msgspec
import pytest

from adaptor_experiments.figures.canvas import sheet
from adaptor_experiments.figures.gantt import Lane, draw_requests, lanes
from adaptor_simulation.grid_job import GridRequest

QUEUED = GridRequest(job=1, p=4, tr=100, submitted=10, predicted_start=50.0)
RAN = msgspec.structs.replace(QUEUED, started=40, ended=90, tasks=3, work=150)


@pytest.mark.parametrize(
    ("request_", "shown"),
    [
        (RAN, Lane((10, 40), (50.0, 150.0), (40, 90), 0.75, None)),
        (msgspec.structs.replace(QUEUED, ended=30), Lane((10, 30), (50.0, 150.0), None, 0.0, 30)),
        (
            msgspec.structs.replace(RAN, predicted_start=None, ended=40, work=0),
            Lane((10, 40), None, (40, 40), 0.0, None),
        ),
    ],
)
def test_a_line_says_when_a_request_was_planned_waited_ran_and_was_withdrawn(request_, shown):
    assert lanes([request_]) == [shown]


def test_a_request_that_is_not_over_has_no_line():
    assert lanes([QUEUED]) == []


def test_used_and_wasted_time_fill_the_height_of_what_ran():
    axes = sheet(4, 2).subplots()
    draw_requests(axes, [RAN], begin=10, second=10)
    boxes = {bars.get_label(): [patch.get_bbox() for patch in bars] for bars in axes.containers}
    (planned,), (used,), (wasted,) = (
        boxes[name] for name in ("request was planned to run", "pilots: used", "pilots: wasted")
    )
    assert (planned.x0, planned.x1, used.x0, used.x1) == (4, 14, 3, 8)
    height = abs(planned.height)
    assert abs(used.height) == pytest.approx(0.75 * height)
    assert abs(wasted.height) == pytest.approx(0.25 * height)
    assert used.y1 == pytest.approx(wasted.y0)


def test_what_does_not_occur_stays_out_of_the_legend():
    axes = sheet(4, 2).subplots()
    draw_requests(axes, [msgspec.structs.replace(RAN, predicted_start=None)], begin=10, second=10)
    assert "request was planned to run" not in axes.get_legend_handles_labels()[1]
