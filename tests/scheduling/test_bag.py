"""One bag in memory."""

from __future__ import annotations

from adaptor.bag_spec import BagSpec
from adaptor.model import TaskState
from adaptor.scheduling.bag import Bag


def bag(tasks: int, **options: object) -> Bag:
    spec = BagSpec(name="b", cwd="/", output="/out", environment={}, **options)  # type: ignore[arg-type]
    return Bag(1, spec, tasks)


def test_a_task_may_have_more_attempts_than_fit_into_16_bits() -> None:
    made = bag(1)
    made.restore(0, TaskState.WAITING, 65_535, 0)
    made.take(0)
    assert made.lease(0) == made.attempts(0) == 65_536
    other = bag(1)
    other.restore(0, TaskState.WAITING, 65_536, 0)
    assert other.attempts(0) == 65_536
