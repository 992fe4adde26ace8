"""Failures hold up the tasks of their own shape; only many different ones hold up the site."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.situation import ShapeAt, TaskShape
from adaptor.decisions.failures.shape_backoffs import SHAPES_IN_A_ROW, ShapeBackoffs
from adaptor.resources import TaskSize

ONE: ShapeAt = ((TaskSize(), None), "")
TWO: ShapeAt = ((TaskSize(processors=2), None), "")
MANY: list[TaskShape] = [(TaskSize(processors=cpus), None) for cpus in range(1, 9)]


def test_one_shape_waits_and_no_other() -> None:
    backoffs = ShapeBackoffs(first=30, most=900)
    backoffs.failed(ONE, 1000.0, "too large")
    held = backoffs.holdoffs
    assert held.of(ONE).waiting(1029.0)
    assert not held.of(ONE).waiting(1030.0)
    assert not held.of(TWO).waiting(1000.0)
    assert not held.of_all.waiting(1000.0)


def test_a_shape_that_keeps_failing_waits_longer_although_others_succeed() -> None:
    backoffs = ShapeBackoffs(first=30, most=900)
    for at in (0.0, 100.0, 200.0):
        backoffs.failed(ONE, at, "too large")
        backoffs.succeeded(TWO)
    assert backoffs.holdoffs.of(ONE).until == 200.0 + 4 * 30


def test_what_is_not_due_to_the_tasks_holds_all_of_them_up_until_a_success() -> None:
    backoffs = ShapeBackoffs(first=30, most=900)
    backoffs.failed(None, 0.0, "no connection")
    assert backoffs.holdoffs.of_all.waiting(10.0)
    backoffs.succeeded(ONE)
    assert not backoffs.holdoffs.of_all.waiting(10.0)


@given(st.lists(st.sampled_from(MANY), min_size=1, max_size=20))
def test_the_site_pauses_after_several_shapes_in_a_row(failed: list[TaskShape]) -> None:
    backoffs = ShapeBackoffs(first=30, most=900)
    for shape in failed:
        backoffs.failed((shape, ""), 0.0, "no such account")
    held = backoffs.holdoffs
    assert held.of_all.waiting(0.0) == (len(set(failed)) >= SHAPES_IN_A_ROW)


@given(st.lists(st.sampled_from(MANY), min_size=1, max_size=20), st.sets(st.sampled_from(MANY)))
def test_what_no_longer_waits_is_forgotten(failed: list[TaskShape], waiting: set[TaskShape]) -> None:
    backoffs = ShapeBackoffs(first=30, most=900)
    for shape in failed:
        backoffs.failed((shape, ""), 0.0, "no such account")
    backoffs.keep(waiting)
    held = backoffs.holdoffs
    assert {shape for shape, _ in held.by_shape} == set(failed) & waiting
    assert held.of_all.waiting(0.0) == (len(held.by_shape) >= SHAPES_IN_A_ROW)


def test_what_failed_in_one_partition_is_tried_in_the_others() -> None:
    backoffs = ShapeBackoffs(first=30, most=900)
    for partition in ("short", "long", "debug"):
        backoffs.failed((MANY[0], partition), 0.0, "no such account")
    held = backoffs.holdoffs
    assert held.of((MANY[0], "short")).waiting(0.0)
    assert not held.of((MANY[0], "other")).waiting(0.0)
    assert not held.of_all.waiting(0.0), "one shape alone does not speak against the site"
