"""A new bag that no site can ever run is refused at once, as far as the nodes are known."""

from __future__ import annotations

import pytest

from adaptor.bag_spec import BagSpec
from adaptor.decisions.new_bags import check_can_run
from adaptor.errors import UsageError
from adaptor.model import NodeSize, QueueState

GIB = 2**30
SMALL = QueueState(now=0.0, processors=16, nodes=(NodeSize(4, 4, 4 * GIB),))
LARGE = QueueState(now=0.0, processors=64, nodes=(NodeSize(1, 64, 256 * GIB),))


def spec(**options: int) -> BagSpec:
    return BagSpec(name="b", cwd="/", output="/nowhere", environment={}, **options)  # type: ignore[arg-type]


def test_tasks_that_fit_nowhere_are_refused_with_the_reason_for_each_site() -> None:
    with pytest.raises(UsageError, match=r"small: each needs 8 processors .*; other: each needs 8"):
        check_can_run(spec(cpus=8), {"small": SMALL, "other": SMALL})
    with pytest.raises(UsageError, match=r"each needs 8G on one node with 1 processor, and .* has 4G"):
        check_can_run(spec(memory=8 * GIB), {"small": SMALL})


@pytest.mark.parametrize("other", [LARGE, None, QueueState(now=0.0, processors=4)])
def test_tasks_that_may_fit_somewhere_are_taken(other: QueueState | None) -> None:
    check_can_run(spec(cpus=8, memory=8 * GIB), {"small": SMALL, "other": other})
