"""What the slides expect of tasks that run, and which of them they move."""

from __future__ import annotations

import pytest

from adaptor.budget.provisioning.tail_phase import IdleProcessor, RunningTask
from adaptor.runtimes.sample import RuntimeSample
from adaptor_experiments.bats.ending import LongEverywhere, migration


def running(task, left, slow, fast):
    return RunningTask(task=task, left=left, whole={"slow": slow, "fast": fast})


def test_a_late_task_is_long_everywhere_by_the_slides():
    known = RuntimeSample()
    for task, runtime in enumerate(range(10, 110, 10)):
        known.add(task, runtime)
    slides = LongEverywhere(known, {"slow": 1.0, "fast": 0.5})
    assert slides.of(1, [("slow", 60.0)]) == running(1, 40.0, 100.0, 50.0)
    assert slides.on_average(1, [("slow", 60.0)]).left == pytest.approx(85 - 60)


def test_a_task_is_moved_only_to_where_it_ends_sooner():
    place = IdleProcessor(0, "fast", 100.0)
    assert migration([running(1, 50.0, 60.0, 20.0), running(2, 90.0, 95.0, 60.0)], place) == 2
    assert migration([running(1, 10.0, 40.0, 20.0)], place) is None
