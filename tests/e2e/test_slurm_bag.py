"""A bag on a real Slurm with local jobs in the queue: limits hold, all is done, nothing is left."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, until
from tests.e2e.watching import QueueWatch

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]

SITE = """
    sites:
      hpc:
        backend: slurm
        partition: batch
        heuristic: {heuristic}
        limits: {{max_pending_requests: 3, max_proc: 6, max_tr: 30m}}
        initial_tr: 20s
        idle_timeout: 10
        poll_interval: 3
"""


def local_jobs(slurm: ThrowawaySlurm) -> None:
    """Half of the nodes are busy, and a job that wants all of them waits."""
    for _ in range(2):
        slurm.run(["sbatch", "-p", "batch", "-N1", "--exclusive", "-t2", "-o/dev/null", "--wrap", "sleep 25"])
    slurm.run(["sbatch", "-p", "batch", "-N4", "--exclusive", "-t2", "-o/dev/null", "--wrap", "sleep 5"])


TASKS = 75


@pytest.mark.parametrize(
    "heuristic",
    ["completion", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("static", "adaptive"))],
)
def test_all_tasks_end_within_the_limits(slurm: ThrowawaySlurm, lab: Lab, heuristic: str) -> None:
    lab.configure(SITE.format(heuristic=heuristic))
    draw = random.Random(2008)
    lab.bag(f"sleep {draw.uniform(0.2, 4):.2f}; echo $ADAPTOR_TASK_ID" for _ in range(TASKS))
    local_jobs(slurm)
    with QueueWatch(slurm) as watch:
        lab.run("run", "tasks.bag", timeout=350)
        until(lambda: not watch.look().jobs, "soon after the bag is done no pilot is left", timeout=60)
    assert max(len(seen.jobs) for seen in watch.seen) == 3
    shapes = {(processors, minutes) for seen in watch.seen for _, processors, minutes in seen.jobs}
    assert max(processors for processors, _ in shapes) <= 6
    assert max(minutes for _, minutes in shapes) <= 30
    exactly_one_result_each(lab, 1, TASKS)
    outputs = [Path(task["stdout"]).read_text() for task in lab.results(1)]
    assert outputs == [f"{task}\n" for task in range(TASKS)]
