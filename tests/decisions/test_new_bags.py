"""A new bag that no site can ever run is refused at once, as far as the nodes are known."""

from __future__ import annotations

import pytest

from adaptor.bag_spec import BagSpec
from adaptor.decisions.new_bags import check_can_run, check_times, impossible_tasks
from adaptor.errors import UsageError
from adaptor.guard_rails import EarlySignal, TimeLimit
from adaptor.model import QueueState
from adaptor.resources import Node, TaskGpus, TaskSize
from tests.alike import alike

GIB = 2**30
SMALL = QueueState(now=0.0, processors=16, nodes=alike(4, 4, 4 * GIB))
ONE_GPU = QueueState(
    now=0.0, processors=8, nodes=(Node(name="n", processors=8, memory=4 * GIB, gpus=(("a100", 1),)),)
)
LARGE = QueueState(now=0.0, processors=64, nodes=alike(1, 64, 256 * GIB))


def spec(**options: object) -> BagSpec:
    return BagSpec(name="b", cwd="/", output="/nowhere", environment={}, **options)  # type: ignore[arg-type]


def test_tasks_that_fit_nowhere_are_refused_with_the_reason_for_each_site() -> None:
    with pytest.raises(UsageError, match=r"small: each needs 8 processors .*; other: each needs 8"):
        check_can_run(spec(cpus=8), {"small": SMALL, "other": SMALL})
    with pytest.raises(UsageError, match=r"each needs 8G on one node with 1 processor, and .* has 4G"):
        check_can_run(spec(memory=8 * GIB), {"small": SMALL})


def test_the_largest_that_fits_is_named() -> None:
    with pytest.raises(UsageError, match=r"each needs 2 GPUs on one node with 1 processor, and .* has is 1"):
        check_can_run(spec(gpus=TaskGpus(2)), {"gpu": ONE_GPU})
    with pytest.raises(UsageError, match=r"1 h100 GPU on one node .* the site has a100"):
        check_can_run(spec(gpus=TaskGpus(1, "h100")), {"gpu": ONE_GPU})
    with pytest.raises(UsageError, match=r"each needs 5 nodes, and 4 of the site hold it"):
        check_can_run(spec(nodes=5), {"small": SMALL})
    check_can_run(spec(gpus=TaskGpus(0.5)), {"gpu": ONE_GPU})
    check_can_run(spec(nodes=4), {"small": SMALL})


def test_whole_nodes_have_whole_gpus() -> None:
    with pytest.raises(UsageError, match="--gpus must be a whole number with --nodes"):
        check_can_run(spec(gpus=TaskGpus(0.5), nodes=2), {"gpu": None})


@pytest.mark.parametrize("other", [LARGE, None, QueueState(now=0.0, processors=4)])
def test_tasks_that_may_fit_somewhere_are_taken(other: QueueState | None) -> None:
    check_can_run(spec(cpus=8, memory=8 * GIB), {"small": SMALL, "other": other})


def test_times_that_leave_a_task_no_chance_are_refused() -> None:
    sites = {"short": 600.0, "long": 36_000.0}
    with pytest.raises(UsageError, match=r"--timeout 5m would end tasks that take the 10m of --time"):
        check_times(spec(time=600.0, timeout=TimeLimit(seconds=300.0)), sites)
    with pytest.raises(UsageError, match=r"--signal USR1@600: a task at short has at most 10m"):
        check_times(spec(signal=EarlySignal("SIGUSR1", 600.0)), sites)
    check_times(spec(time=600.0, timeout=TimeLimit(part=3.0), signal=EarlySignal("SIGUSR1", 120.0)), sites)
    check_times(spec(timeout=TimeLimit(seconds=1.0)), sites)
    with pytest.raises(UsageError, match=r"--time 12h: a task has at most 10h \(max_tr less the pad\)"):
        check_times(spec(time=43_200.0), sites)
    check_times(spec(time=36_000.0), sites)
    check_times(spec(time=43_200.0, requeue_on=(75,)), sites)
    check_times(spec(time=43_200.0, timeout=TimeLimit(seconds=43_200.0)), sites)
    check_times(spec(time=43_200.0), {})


def test_each_task_that_nothing_can_run_is_named_and_the_others_are_not() -> None:
    sizes = {
        3: TaskSize(processors=5),
        4: TaskSize(processors=4, memory=4 * GIB),
        5: TaskSize(memory=5 * GIB),
        6: TaskSize(nodes=5),
        7: TaskSize(nodes=4),
    }
    found = impossible_tasks(sizes, {"small": SMALL}, most=8)
    assert sorted(found) == [3, 5, 6]
    assert "each needs 5 processors on one node, and the largest node has 4" in found[3]
    assert "and such a node has 4G" in found[5]
    assert "each needs 5 nodes, and 4 of the site hold it" in found[6]
    assert sorted(impossible_tasks(sizes, {"small": SMALL, "large": LARGE}, most=99)) == [6]
    assert sorted(impossible_tasks(sizes, {"small": None}, most=4)) == [3, 6]
    assert "max_proc is 4" in impossible_tasks(sizes, {"small": None}, most=4)[3]
