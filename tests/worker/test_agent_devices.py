"""A worker with GPUs, and one whose processors are its own: what its tasks find."""

from __future__ import annotations

import os
import sys

from adaptor.protocol.messages import AttemptKey, Lease
from adaptor.resources import TaskSize
from tests.worker.fake_daemon import Harness, wait_for

SHOW = 'echo "$CUDA_VISIBLE_DEVICES/$ADAPTOR_GPUS"; '
AFFINITY = [sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))"]


def outputs(harness: Harness, leases: list[Lease]) -> list[str]:
    harness.daemon.until(lambda: all(each.key in harness.daemon.results for each in leases))
    return [(harness.output / f"{each.key.task}.out").read_text().strip() for each in leases]


def test_each_task_finds_its_own_gpus(harness: Harness) -> None:
    harness.started(ADAPTOR_PROCESSORS=4, CUDA_VISIBLE_DEVICES="3,GPU-5a", ADAPTOR_GPU_TYPE="a100")
    (hello,) = harness.daemon.hellos
    assert (hello.gpus, hello.gpu_type) == (2, "a100")
    bags = [harness.bag(1, task=TaskSize(gpus=1, gpu_type="a100")), harness.bag(2)]
    go = harness.folder / "go"
    beside = SHOW + wait_for(go)
    whole = [
        Lease(AttemptKey(1, number, 1), beside, 0.0, environment={"CUDA_VISIBLE_DEVICES": "7"})
        for number in (0, 1)
    ]
    without = Lease(AttemptKey(2, 2, 1), SHOW, 0.0)
    harness.lease(*whole, without, bags=bags)
    harness.daemon.until(lambda: any(report.free_gpus == [0.0, 0.0] for report in harness.daemon.reports))
    harness.running(*(each.key for each in whole))
    go.touch()
    assert sorted(outputs(harness, whole)) == ["3/3", "GPU-5a/GPU-5a"]
    assert outputs(harness, [without]) == ["/"]


def test_tasks_beside_each_other_have_processors_of_their_own(harness: Harness) -> None:
    mine = os.sched_getaffinity(0)
    harness.started(ADAPTOR_PROCESSORS=len(mine))
    bags = [harness.bag(1), harness.bag(2, bind=False)]
    leases = [Lease(AttemptKey(1, number, 1), AFFINITY, 0.0) for number in range(len(mine))]
    free = Lease(AttemptKey(2, len(mine), 1), AFFINITY, 0.0)
    harness.lease(*leases, free, bags=bags)
    told = outputs(harness, leases)
    assert outputs(harness, [free]) == [" ".join(map(str, sorted(mine)))]
    assert {int(each) for text in told for each in text.split()} <= mine
    assert all(len(text.split()) == 1 for text in told), "each has one"
