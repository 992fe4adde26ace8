"""What jobs hold of each node."""

from __future__ import annotations

import math
from collections import Counter

import msgspec
import pytest

from adaptor.model import QueueState, RunningJob
from adaptor.resources import Part
from backends.observed.state import HIDDEN
from backends.slurm.nodes import PartitionNodes
from backends.slurm.placing.job_details import JobDetail
from backends.slurm.questions import SlurmReading
from backends.slurm.queue import SlurmSeen, queue_state

NOW = 1795370432.0
MIB = 2**20


@pytest.fixture
def seen(reading: SlurmReading, mixed: PartitionNodes) -> SlurmSeen:
    site = msgspec.structs.replace(mixed, memory_counted=True)
    return SlurmSeen(now=NOW, site=site, jobs=reading.jobs, details=reading.job_details.found)


def running(state: QueueState) -> dict[str, RunningJob]:
    return {each.id: each for each in state.running}


def test_the_recorded_scene(seen: SlurmSeen) -> None:
    found = running(queue_state(seen))
    assert found["1"].parts == (
        Part(node="n3", processors=4, memory=400 * MIB),
        Part(node="n4", processors=4, memory=400 * MIB),
    )
    # Alone on its node, it asked for 100 MiB: nobody gets the rest.
    assert found["2"].parts == (Part(node="n1", processors=4, memory=4000 * MIB),)
    assert found["3"] == RunningJob(
        "3", 0, math.inf, (Part(node="n3", processors=0, memory=300 * MIB, gpus=(("", 1),)),)
    )
    # The name of job 5 says otherwise.
    assert found["5"].parts == (Part(node="n2", processors=1, memory=50 * MIB),)
    # Jobs of one user share a node with each other: not with ours, unless that is our user.
    assert found["8"].parts == (Part(node="n2", processors=6, memory=8000 * MIB),)
    ours = running(queue_state(msgspec.structs.replace(seen, user="root")))
    assert ours["8"].parts == (Part(node="n2", processors=1, memory=60 * MIB),)
    assert HIDDEN not in found


def test_details_that_do_not_agree_with_squeue_are_not_used(seen: SlurmSeen) -> None:
    wrong = {**seen.details, "5": JobDetail(parts=(Part(node="n1", processors=1, memory=9 * MIB),))}
    found = running(queue_state(msgspec.structs.replace(seen, details=wrong, user="root")))
    assert found["5"].parts == (Part(node="n2", processors=1),)
    assert found[HIDDEN] == RunningJob(HIDDEN, 0, math.inf, (Part(node="n2", processors=0, memory=50 * MIB),))


def test_what_is_told_of_each_node_is_what_slurm_says_is_allocated(seen: SlurmSeen) -> None:
    held: Counter[tuple[str, str]] = Counter()
    for each in queue_state(msgspec.structs.replace(seen, user="root")).running:
        for part in each.parts:
            held[part.node, "cpu"] += part.processors
            held[part.node, "mem"] += part.memory
            held[part.node, "gpu"] += sum(count for _, count in part.gpus)
    for each_node in seen.site.listed.values():
        assert held[each_node.name, "cpu"] == each_node.held.processors
        assert held[each_node.name, "gpu"] == sum(count for _, count in each_node.held.gpus)
        if each_node.name != "n1":  # held wholly
            assert held[each_node.name, "mem"] == each_node.held.memory


def test_jobs_that_we_may_not_see_are_known_by_their_nodes(seen: SlurmSeen) -> None:
    found = running(queue_state(msgspec.structs.replace(seen, jobs=[], details={})))
    assert found[HIDDEN].processors == 17
    assert found[HIDDEN].parts == (
        Part(node="n1", processors=4, memory=100 * MIB),
        Part(node="n2", processors=3, memory=310 * MIB),
        Part(node="n3", processors=6, memory=870 * MIB, gpus=(("", 2),)),
        Part(node="n4", processors=4, memory=400 * MIB),
    )


def test_a_planned_job_keeps_its_nodes_wholly_as_the_backfill_scheduler_does(seen: SlurmSeen) -> None:
    planned = {each.id: each for each in queue_state(seen).pending}
    assert planned["12"].parts == (
        Part(node="n2", processors=6, memory=8000 * MIB),
        Part(node="n3", processors=8, memory=16000 * MIB, gpus=(("", 2),)),
    )
    assert planned["12"].planned_start == pytest.approx(1795372230, abs=2)
