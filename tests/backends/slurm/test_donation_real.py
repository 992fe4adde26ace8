"""Nodes are donated and taken back on a real Slurm of 4 nodes with 4 processors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.donation.situation import NodeUse
from adaptor.reports import JobReport, JobState, NodeReport
from adaptor.resources import TaskSize
from adaptor.units import Duration
from backends.base import PilotOrder
from backends.slurm.backend import SlurmBackend
from backends.slurm.discover import check_site
from tests.backends.orders import runnable
from tests.clusters.slurm import ThrowawaySlurm
from tests.living import until

pytestmark = pytest.mark.slurm

DONATING = SiteConfig(
    backend="slurm",
    partition="batch",
    extra_args=("--constraint=nowhere",),
    qos="none",
    donation=DonationConfig(mode="preemptible", partition="scavenger"),
    command_timeout=Duration(20),
)
"""Its own arguments would have any pilot refused."""
TELL = 'env > "$ADAPTOR_DIRECTORY/env.new"; mv "$ADAPTOR_DIRECTORY/env.new" "$ADAPTOR_DIRECTORY/env"'
LEAVE_AT_ONCE = f'trap "exit 0" TERM; {TELL}; sleep 600 & wait'
STAY_TOO_LONG = f'trap "" TERM; {TELL}; sleep 600'
IDLE, TAKEN, AWAY = NodeUse.IDLE, NodeUse.TAKEN, NodeUse.AWAY


class Donor:
    """A backend, the pilots of one test, and what is seen of the nodes."""

    def __init__(self, folder: Path) -> None:
        self.backend = SlurmBackend(DONATING)
        self._folder = folder
        self.pilots: dict[str, str] = {}
        """Job by node."""

    def donate(self, *nodes: str, worker: str = LEAVE_AT_ONCE) -> None:
        for node in nodes:
            self.pilots[node] = self.backend.submit(self.order(node, worker))
        for node in nodes:
            until((self._folder / node / "env").exists, f"the worker on {node}")

    def environment(self, node: str) -> dict[str, str]:
        lines = (self._folder / node / "env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def report(self, node: str) -> JobReport:
        (found,) = self.backend.jobs([self.pilots[node]], "no such tag")
        return found

    def nodes(self) -> dict[str, NodeReport]:
        return {node.name: node for node in self.backend.nodes(list(self.pilots.values()))}

    def uses(self) -> list[NodeUse]:
        return [node.use for node in self.nodes().values()]

    def sees(self, *uses: NodeUse) -> None:
        until(lambda: self.uses() == list(uses), lambda: f"{uses}, but {self.uses()}")

    def states(self) -> list[JobState]:
        return [self.report(node).state for node in self.pilots]

    def tells(self, *states: JobState) -> None:
        """Slurm marks a node as taken a moment before it ends the pilot there."""
        until(lambda: self.states() == list(states), lambda: f"{states}, but {self.states()}")

    def order(self, node: str, worker: str) -> PilotOrder:
        task = TaskSize(processors=1, memory=2**30)
        return runnable(self._folder, node, worker, 4, 1800, task, node=node)


@pytest.fixture
def donor(slurm: ThrowawaySlurm, tmp_path: Path) -> Donor:
    return Donor(tmp_path)


def local_job(slurm: ThrowawaySlurm, *options: str, does: str = "sleep 900") -> str:
    command = ["sbatch", "--parsable", "--output=/dev/null", "-p", "batch", "-t", "20"]
    return slurm.run([*command, *options, f"--wrap={does}"]).strip()


def test_a_local_job_takes_the_nodes_it_wants_and_no_others(
    slurm: ThrowawaySlurm, donor: Donor, tmp_path: Path
) -> None:
    donor.donate("n1", "n2", "n3", "n4")
    assert [donor.environment(node)["ADAPTOR_PROCESSORS"] for node in donor.pilots] == ["4"] * 4
    assert donor.uses() == [IDLE] * 4
    submitted = time.time()
    local_job(slurm, "-N2", "--exclusive", does=f"date +%s.%N > {tmp_path}/started; sleep 900")
    donor.sees(TAKEN, TAKEN, IDLE, IDLE)
    donor.tells(*[JobState.PREEMPTED] * 2, *[JobState.RUNNING] * 2)
    ended = donor.report("n1").end
    assert ended is not None
    assert submitted - 1 <= ended
    until((tmp_path / "started").exists, "the local job")


def test_a_job_that_wants_little_leaves_donated_nodes_alone_while_other_nodes_are_idle(
    slurm: ThrowawaySlurm, donor: Donor
) -> None:
    donor.donate("n1", "n2", "n3")
    local_job(slurm, "-n1")
    donor.sees(IDLE, IDLE, IDLE, TAKEN)
    local_job(slurm, "-n3")
    donor.sees(IDLE, IDLE, IDLE, TAKEN)
    local_job(slurm, "-n1")
    until(lambda: donor.uses().count(TAKEN) == 2, "one more node")
    until(lambda: donor.states().count(JobState.PREEMPTED) == 1, "one pilot ends")


@pytest.fixture
def requeueing(slurm: ThrowawaySlurm) -> Iterator[None]:
    """Slurm puts preempted jobs back into its queue, where these allow it."""
    slurm.run(["scontrol", "update", "partitionname=scavenger", "preemptmode=requeue"])
    yield
    slurm.run(["scontrol", "update", "partitionname=scavenger", "preemptmode=cancel"])


@pytest.mark.parametrize("worker", [LEAVE_AT_ONCE, LEAVE_AT_ONCE.replace("exit 0", "exit 3")])
def test_a_pilot_on_a_donated_node_is_never_put_back_into_the_queue(
    slurm: ThrowawaySlurm, donor: Donor, requeueing: None, worker: str
) -> None:
    donor.donate("n2", worker=worker)
    local_job(slurm, "-N4", "--exclusive")
    donor.sees(TAKEN, TAKEN, TAKEN, TAKEN)
    until(lambda: donor.report("n2").state.ended is not None, "the end of the pilot")
    assert donor.report("n2").state is JobState.PREEMPTED
    assert slurm.run(["squeue", "-h", "-p", "scavenger"]) == ""


@pytest.mark.nightly  # waits for the grace time
def test_a_pilot_on_a_donated_node_that_stays_until_it_is_killed_was_preempted_all_the_same(
    slurm: ThrowawaySlurm, donor: Donor
) -> None:
    donor.donate("n1", worker=STAY_TOO_LONG)
    local_job(slurm, "-N1", "-w", "n1", "--exclusive")
    donor.sees(TAKEN, IDLE, IDLE, IDLE)
    until(lambda: donor.report("n1").state.ended is not None, "the end of the pilot")
    assert donor.report("n1").state is JobState.PREEMPTED
    assert donor.report("n1").end is not None


def test_a_pilot_on_a_donated_node_that_cannot_start_soon_leaves_the_queue_by_itself(
    slurm: ThrowawaySlurm, donor: Donor
) -> None:
    local_job(slurm, "-N1", "-w", "n1", "--exclusive")
    donor.sees(TAKEN, IDLE, IDLE, IDLE)
    before = int(time.time())
    id = donor.backend.submit(donor.order("n1", LEAVE_AT_ONCE))
    told = slurm.run(["squeue", "-h", "-j", id, "-O", "SubmitTime:20,Deadline:20,TimeLimit:20"])
    submitted, deadline = (time.mktime(time.strptime(word, "%Y-%m-%dT%H:%M:%S")) for word in told.split()[:2])
    # Counted from when sbatch was started; Slurm may have the request later.
    assert before <= deadline - (1800 + 120) <= submitted + 1


def test_nodes_that_must_be_left_alone(slurm: ThrowawaySlurm, donor: Donor, out_of_service: None) -> None:
    donor.donate("n4")
    donor.sees(AWAY, AWAY, AWAY, IDLE)
    slurm.run(["scontrol", "update", "nodename=n4", "state=drain", "reason=test"])
    donor.sees(AWAY, AWAY, AWAY, AWAY)


@pytest.fixture
def out_of_service(slurm: ThrowawaySlurm) -> Iterator[None]:
    """n1 is drained, n2 down and n3 reserved."""
    slurm.run(["scontrol", "update", "nodename=n1", "state=drain", "reason=test"])
    slurm.run(["scontrol", "update", "nodename=n2", "state=down", "reason=test"])
    slurm.run(
        ["scontrol", "create", "reservation", "reservationname=course", "starttime=now", "duration=60",
         "users=root", "nodes=n3"]
    )  # fmt: skip
    yield
    slurm.run(["scontrol", "delete", "reservationname=course"])


def test_the_site_check_sees_that_donated_nodes_make_room(slurm: ThrowawaySlurm) -> None:
    found = [each for each in check_site(DONATING) if each.text.startswith("donation")]
    assert [each.level for each in found] == ["ok", "ok"]
    assert "scavenger make room for those of batch, with 5s to leave" in found[1].text


def test_plans_are_seen(slurm: ThrowawaySlurm, donor: Donor) -> None:
    began = time.time()
    slurm.run(
        ["scontrol", "create", "reservation", "reservationname=later", "starttime=now+2hours", "duration=60",
         "users=root", "nodes=n4"]
    )  # fmt: skip
    reserved = time.time()
    try:
        first = local_job(slurm, "-N1", "-w", "n1", "--exclusive")
        local_job(slurm, "-N2", "-w", "n[1-2]", "--exclusive", "-t", "5")
        until(lambda: donor.nodes()["n2"].planned < began + 3600, "the plan for the waiting job")
        nodes = donor.nodes()
        end = slurm.run(["squeue", "-h", "-j", first, "-o", "%e"], env={"SLURM_TIME_FORMAT": "%s"})
        assert nodes["n2"].planned == pytest.approx(float(end), abs=30)
        assert nodes["n3"].planned == float("inf")
        assert began + 7200 - 30 <= nodes["n4"].planned <= reserved + 7200 + 30
        assert [node.use for node in nodes.values()] == [TAKEN, IDLE, IDLE, IDLE]
        assert {(node.processors, node.memory) for node in nodes.values()} == {(4, 4000 * 2**20)}
    finally:
        slurm.run(["scontrol", "delete", "reservationname=later"])
