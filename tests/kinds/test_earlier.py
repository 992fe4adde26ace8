"""What earlier bags say of a new one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.bag_spec import TaskKind
from adaptor.kinds.earlier import (
    KindRecord,
    earlier_tasks,
    earlier_text,
    memory_needed,
    record_of,
    tells_enough,
)

FIT, PREP = TaskKind("f", "fit.py", 10), TaskKind("p", "prep.py", 10)
MIB = 1 << 20


def record(mean: float, tasks: int = 10, memory: int = 0) -> KindRecord:
    return record_of(tasks, [mean] * tasks, [memory] * tasks if memory else [])


def test_the_newest_bag_counts_half() -> None:
    earlier = earlier_tasks([FIT], {"f": {"here": [record(400), record(100)]}}, "here")
    assert earlier is not None
    assert earlier.mean == pytest.approx(100 * 4 ** (2 / 3))
    assert (earlier.kind, earlier.tasks, earlier.low, earlier.high) == ("fit.py", 20, 100, 400)


def test_alike_bags_keep_the_usual_doubt_and_different_ones_widen_it() -> None:
    alike = earlier_tasks([FIT], {"f": {"here": [record(100)] * 12}}, "here")
    apart = earlier_tasks([FIT], {"f": {"here": [record(100), record(10_000)] * 3}}, "here")
    assert alike is not None
    assert apart is not None
    assert alike.factor == 2.0
    assert 10 < apart.factor < 100


def test_another_site_counts_where_this_one_knows_nothing() -> None:
    records = {"f": {"there": [record(100)]}}
    earlier = earlier_tasks([FIT], records, "here")
    assert earlier is not None
    assert (earlier.kind, earlier.factor) == ("fit.py at there", 3.0)
    records["f"]["here"] = [record(7)]
    earlier = earlier_tasks([FIT], records, "here")
    assert earlier is not None
    assert (earlier.kind, earlier.mean) == ("fit.py", pytest.approx(7))


def test_two_kinds_count_by_their_tasks() -> None:
    records = {"f": {"here": [record(100)]}, "p": {"here": [record(300)]}}
    earlier = earlier_tasks([FIT, PREP], records, "here")
    assert earlier is not None
    assert (earlier.kind, earlier.low, earlier.high) == ("fit.py and prep.py", 100, 300)
    assert earlier.mean == pytest.approx(200)


def test_a_kind_of_which_nothing_is_known_leaves_the_bag_unknown_unless_it_is_rare() -> None:
    records = {"f": {"here": [record(100)]}}
    assert earlier_tasks([FIT, PREP], records, "here") is None
    assert earlier_tasks([FIT, TaskKind("p", "prep.py", 1)], records, "here") is not None
    assert earlier_tasks([FIT], {}, "here") is None
    assert earlier_tasks([], {}, "here") is None


def test_memory_has_a_margin_and_is_rounded_up() -> None:
    records = {"f": {"here": [record(1, memory=1000 * MIB)], "there": [record(1, memory=100 * MIB)]}}
    assert memory_needed([FIT], records) == 1280 * MIB
    assert memory_needed([FIT, PREP], records) is None
    assert memory_needed([FIT, TaskKind("p", "prep.py", 1)], records) == 1280 * MIB, "it is rare"
    assert memory_needed([FIT], {"f": {"here": [record(1)]}}) is None


def test_few_tasks_that_need_far_more_than_others_do_not_set_the_memory() -> None:
    many = record_of(1000, [1.0] * 1000, [100 * MIB] * 995 + [10_000 * MIB] * 5)
    assert memory_needed([FIT], {"f": {"here": [many]}}) == 128 * MIB


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=300))
def test_what_is_kept_of_a_bag_is_small_and_spans_it(runtimes: list[float]) -> None:
    kept = record_of(len(runtimes), runtimes, [])
    assert len(kept.runtimes) <= 21
    assert (kept.runtimes[0], kept.runtimes[-1]) == (min(runtimes), max(runtimes))
    earlier = earlier_tasks([FIT], {"f": {"here": [kept]}}, "here")
    assert earlier is not None
    assert earlier.low <= earlier.high
    assert math.isfinite(earlier.mean)
    assert earlier.mean > 0


def test_it_is_told_in_one_sentence() -> None:
    earlier = earlier_tasks([FIT], {"f": {"here": [record_of(12, [240.0] * 6 + [540.0] * 6, [])]}}, "here")
    assert earlier is not None
    assert earlier_text(earlier) == "12 earlier tasks of fit.py took 4m to 9m"


@pytest.mark.parametrize(
    ("records", "enough"),
    [
        ({"here": [record(100, 30)]}, True),
        ({"here": [record(100, 10)] * 3}, True),
        ({"here": [record(100, 29)]}, False),
        ({"there": [record(100, 1000)]}, False),
        ({"here": [record(100, 1000), record(10_000, 1000)] * 3}, False),
    ],
)
def test_a_quote_goes_by_many_tasks_at_this_site_that_took_as_long_each_time(
    records: dict[str, list[KindRecord]], enough: bool
) -> None:
    earlier = earlier_tasks([FIT], {"f": records}, "here")
    assert earlier is not None
    assert tells_enough(earlier) is enough
