"""A bag on a real Slurm with local jobs in the queue: limits hold, all is done, nothing is left."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.e2e.watching import QueueWatch
from tests.living import until

pytestmark = pytest.mark.slurm


def local_jobs(slurm: ThrowawaySlurm) -> None:
    """Half of the nodes are busy, and a job that wants all of them waits."""
    for _ in range(2):
        slurm.occupy(1, 2, "sleep 25")
    slurm.occupy(4, 2, "sleep 5")


TASKS = 75


@pytest.mark.parametrize(
    "heuristic",
    ["completion", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("static", "adaptive"))],
)
def test_all_tasks_end_within_the_limits(slurm: ThrowawaySlurm, lab: Lab, heuristic: str) -> None:
    lab.configure(site("slurm", (3, 6, "30m"), heuristic=heuristic, initial_tr="20s", idle_timeout=10))
    draw = random.Random(2008)
    lab.bag(f"sleep {draw.uniform(0.2, 4):.2f}; echo $ADAPTOR_TASK_ID" for _ in range(TASKS))
    local_jobs(slurm)
    with QueueWatch(slurm) as watch:
        lab.run("run", "tasks.bag")
        until(lambda: not watch.look().jobs, "soon after the bag is done no pilot is left")
    assert max(len(seen.jobs) for seen in watch.seen) == 3
    shapes = {(processors, minutes) for seen in watch.seen for _, processors, minutes in seen.jobs}
    assert max(processors for processors, _ in shapes) <= 6
    assert max(minutes for _, minutes in shapes) <= 30
    exactly_one_result_each(lab, 1, TASKS)
    outputs = [Path(task["stdout"]).read_text() for task in lab.results(1)]
    assert outputs == [f"{task}\n" for task in range(TASKS)]


@pytest.mark.nightly
@pytest.mark.usefixtures("slurm")
def test_a_task_that_ends_its_worker_fails_and_the_others_are_done(lab: Lab) -> None:
    terms = {"initial_tr": "30s", "idle_timeout": 5, "daemon": {"worker_timeout": 8}}
    lab.configure(site("slurm", (3, 6, "20m"), **terms))
    lab.bag(["kill -9 $PPID; sleep 5", *["sleep 1"] * 19])
    lab.submit("tasks.bag")
    lab.wait(expect=3)
    found = lab.results()
    assert [task["state"] for task in found] == ["failed"] + ["done"] * 19
    assert found[0]["error"].startswith("its worker died under it 3 times (last: node ")
    assert found[0]["attempts"] <= 6
    assert not any(task["retries"] for task in found)
    assert len(lab.pilots()) <= 16
