"""A scheduler and agents as one backend: what belongs to whom."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from adaptor.donation.situation import NodeUse
from adaptor.model import EndedJob, Limits, QueueState
from adaptor.reports import JobReport, JobState, NodeReport, OwnJob
from adaptor_donation_agents.agents import WithAgents
from backends.base import Backend, PilotOrder, SchedulerError
from tests.donation_agents.donated_nodes import DonatedNodes
from tests.donation_agents.patience import be_patient

LIMITS = Limits(max_pending_requests=3, max_proc=8, max_tr=3600)


class Scheduler:
    """Remembers what it was asked."""

    time_resolution = 60
    slot_margin = 0
    shrink_margin: int | None = None
    can_release = True
    can_follow = False
    can_reshape = True
    most_in_array = 1
    backfilled: int | None = None

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def queue_state(self) -> QueueState:
        self.slot_margin, self.shrink_margin = 7, 3
        return QueueState(now=1.0, processors=8)

    def nodes(self, lent: Collection[str]) -> list[NodeReport]:
        self.asked.append(("nodes", *lent))
        return [NodeReport(name="n1", processors=4, use=NodeUse.IDLE)]

    def submit(self, order: PilotOrder) -> str:
        self.asked.append(("submit", order.tag))
        return "4711"

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        self.asked.append(("jobs", *ids, tag_prefix))
        return [JobReport(id="4711", tag="t", state=JobState.QUEUED)]

    def cancel(self, jobs: Collection[OwnJob]) -> None:
        self.asked.append(("cancel", *(job.id for job in jobs)))

    def reshape(self, id: str, order: PilotOrder) -> None:
        self.asked.append(("reshape", id, order.tag))

    def release(self, job: OwnJob, nodes: Collection[str]) -> None:
        self.asked.append(("release", job.id, *nodes))

    def ended_jobs(self) -> list[EndedJob]:
        return []

    def advertised_limits(self) -> Limits:
        return LIMITS


@pytest.fixture
def both(nodes: DonatedNodes) -> tuple[Backend, Scheduler, DonatedNodes]:
    scheduler = Scheduler()
    be_patient(nodes)
    return WithAgents(scheduler, nodes.agents), scheduler, nodes


def test_an_order_with_a_node_goes_to_the_agents(both: tuple[Backend, Scheduler, DonatedNodes]) -> None:
    backend, scheduler, nodes = both
    lease = backend.submit(nodes.order("n1", "exec sleep 1000"))
    assert lease == "agent:n1:test.1"
    assert scheduler.asked == []
    assert backend.submit(nodes.order("", "exec sleep 1000")) == "4711"
    assert scheduler.asked == [("submit", "test.2")]
    reports = {each.id: each.state for each in backend.jobs([lease, "4711"], "x")}
    assert reports == {lease: JobState.RUNNING, "4711": JobState.QUEUED}
    assert scheduler.asked[1:] == [("jobs", "4711", "x")]


def test_each_ends_its_own(both: tuple[Backend, Scheduler, DonatedNodes]) -> None:
    backend, scheduler, nodes = both
    tag = nodes.lend("n1")
    backend.cancel([OwnJob(f"agent:n1:{tag}", tag), OwnJob("4711", "test.2")])
    assert nodes.report(tag).state is JobState.CANCELLED
    backend.cancel([OwnJob(f"agent:n1:{tag}", tag)])
    assert scheduler.asked == [("cancel", "4711")]


def test_the_scheduler_knows_nothing_of_pilots(both: tuple[Backend, Scheduler, DonatedNodes]) -> None:
    backend, scheduler, nodes = both
    assert [node.name for node in backend.nodes(["agent:n1:t.1", "4711"])] == ["n1"]
    assert scheduler.asked == [("nodes", "4711")]
    backend.release(OwnJob("4711", "test.2"), ["n1"])
    backend.reshape("4711", nodes.order("", "exec sleep 1000"))
    assert scheduler.asked[1:] == [("release", "4711", "n1"), ("reshape", "4711", "test.1")]
    with pytest.raises(SchedulerError, match="one node"):
        backend.release(OwnJob("agent:n1:t.1", "t.1"), ["n1"])


def test_what_the_scheduler_is_like(both: tuple[Backend, Scheduler, DonatedNodes], tmp_path: Path) -> None:
    backend, _, _ = both
    assert (backend.time_resolution, backend.can_release, backend.can_reshape) == (60, True, True)
    assert backend.advertised_limits() == LIMITS
    backend.queue_state()
    assert (backend.slot_margin, backend.shrink_margin) == (7, 3), "learned with the first answer"
