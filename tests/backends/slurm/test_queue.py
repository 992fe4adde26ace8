"""The state of a queue from recorded and made-up rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec
import pytest

from adaptor.model import PendingJob, RunningJob
from adaptor.resources import Node
from backends.base import SchedulerError
from backends.observed.state import LINGER
from backends.slurm.nodes import find_site
from backends.slurm.placing.job_details import JobDetail
from backends.slurm.queue import SlurmSeen, elements, queue_state
from backends.slurm.rows import NodeRow, QueueRow
from tests.backends.slurm.slurm_rows import NOW, job, node


def seen(nodes: list[NodeRow], jobs: list[QueueRow], **given: object) -> SlurmSeen:
    observation = SlurmSeen(now=NOW, site=find_site(nodes, "batch"), jobs=jobs)
    return msgspec.structs.replace(observation, **given)


Job = TypeVar("Job", RunningJob, PendingJob)


def bare(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Without their parts of nodes."""
    return tuple(msgspec.structs.replace(job, parts=()) for job in jobs)


def test_the_sizes_of_all_nodes_are_told_also_of_those_out_of_service() -> None:
    larger = msgspec.structs.replace(node("n3"), idle=8, memory=64000)
    state = queue_state(
        seen([node("n1", 2), node("n2", 0, "down"), larger, node("x1", partition="other")], [])
    )
    assert state.nodes == (
        Node(name="n1", processors=4, memory=1000 * 2**20),
        Node(name="n2", processors=4, memory=1000 * 2**20, in_service=False),
        Node(name="n3", processors=8, memory=64000 * 2**20),
    )


def test_memory_that_nobody_configured_is_not_counted() -> None:
    unknown = msgspec.structs.replace(node("n1"), memory=1)
    assert queue_state(seen([unknown], [])).nodes == (Node(name="n1", processors=4),)


@pytest.mark.parametrize("state", ["down", "drained", "draining", "allocated*", "idle!", "inval", "fail"])
def test_nodes_out_of_service_and_what_runs_there_do_not_count(state: str) -> None:
    spread = job("1", 4, ("n1", "n2"))
    found = queue_state(seen([node("n1", 2), node("n2", 2, state)], [spread]))
    assert found.processors == 4
    assert bare(found.running) == (RunningJob("1", 2, NOW + 500),)


@pytest.mark.parametrize("state", ["idle", "planned", "mixed", "idle~", "completing"])
def test_nodes_in_service(state: str) -> None:
    assert queue_state(seen([node("n1", 0, state)], [])).processors == 4


def test_a_completing_job_still_holds_its_node() -> None:
    jobs = [job("1", 4, ("n1",), state="COMPLETING", end=NOW - 100)]
    assert bare(queue_state(seen([node("n1", 4)], jobs)).running) == (RunningJob("1", 4, NOW + LINGER),)


def test_a_suspended_job_holds_nothing() -> None:
    jobs = [job("1", 4, ("n1",), state="SUSPENDED")]
    assert queue_state(seen([node("n1", 0)], jobs)).running == ()


def test_a_job_that_wants_nodes_for_itself_wants_all_their_processors() -> None:
    alone = {"1": JobDetail(exclusive="NODE")}
    state = queue_state(seen([node("n1"), node("n2")], [job("1", 2, node_count=2)], details=alone))
    assert bare(state.pending) == (PendingJob("1", 8, 600.0),)


def test_higher_tiers_and_priorities_come_first() -> None:
    nodes = [node("n1"), node("n1", partition="urgent"), node("n9", partition="elsewhere")]
    jobs = [
        job("1", 1, priority=5),
        job("2", 1, priority=9),
        job("3", 1, priority=1, partitions=("urgent",)),
        job("4", 1, priority=99, partitions=("elsewhere",)),
    ]
    state = queue_state(seen(nodes, jobs, tiers={"urgent": 20, "batch": 10}))
    assert [each.id for each in state.pending] == ["3", "2", "1"]


def test_of_jobs_with_the_same_priority_the_earlier_comes_first_and_elements_by_their_index() -> None:
    """Slurm's default since 24.11 gives every job priority 1, and squeue prints them in another order."""
    ids = ("12", "5_[3-4]", "9+1", "5_2", "9+0", "100", "21")
    state = queue_state(seen([node("n1")], [job(id, 1) for id in ids]))
    assert [each.id for each in state.pending] == ["5_2", "5_3", "5_4", "9+0", "9+1", "12", "21", "100"]


def test_the_site_must_be_known() -> None:
    with pytest.raises(SchedulerError, match="no partition night with nodes; there are: batch"):
        find_site([node("n1")], "night")
    with pytest.raises(SchedulerError, match="no default partition"):
        find_site([node("n1", partition="other")], None)


@pytest.mark.parametrize(
    ("id", "expected"),
    [
        ("12", ["12"]),
        ("12_3", ["12_3"]),
        ("12_[1-3,7]", ["12_1", "12_2", "12_3", "12_7"]),
        ("12_[0-6:3]", ["12_0", "12_3", "12_6"]),
        ("12_[1-100%2]", ["12_1", "12_2"]),
    ],
)
def test_elements_of_arrays(id: str, expected: list[str]) -> None:
    assert elements(id) == expected
