"""What others do with machines that may be donated, and how a pilot is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.donation.situation import NodeUse
from adaptor.reports import NodeReport
from adaptor.resources import TaskSize
from backends.base import SchedulerError
from backends.donation import donation_terms
from backends.observed.rows import ReservationRow
from backends.pbs.constraints import shape_of
from backends.pbs.donation import donatable, node_reports
from backends.pbs.fields import parse_dsv, parse_long
from backends.pbs.openpbs import submitting as openpbs
from backends.pbs.openpbs.hardware import nodes_of, queues_of
from backends.pbs.openpbs.jobs import everyones_jobs, own_job
from backends.pbs.openpbs.server import JOB
from backends.pbs.reading import PbsAnswers, PbsTerms
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue, PbsServer
from tests.backends.orders import order
from tests.backends.pbs.openpbs_recordings import job_record, recorded, recorded_nodes
from tests.backends.pbs.pbs_rows import NOW, QUEUES, job, node

IDLE, TAKEN, AWAY = NodeUse.IDLE, NodeUse.TAKEN, NodeUse.AWAY
SCRIPT = Path("/home/u/7/pilot.sh")


def terms(nodes: list[PbsNode], queues: Mapping[str, PbsQueue] = QUEUES, name: str = "workq") -> PbsTerms:
    return PbsAnswers(server=PbsServer(name="s", version="1"), queues=dict(queues), nodes=nodes).terms(name)


def look(
    nodes: list[PbsNode],
    jobs: list[PbsJob],
    donated: tuple[str, ...] = (),
    reservations: Sequence[ReservationRow] = (),
) -> dict[str, NodeReport]:
    found = node_reports(NOW, donatable(terms(nodes), None), jobs, donated, reservations)
    return {report.name: report for report in found}


def recorded_look(situation: str, now: float, donated: tuple[str, ...] = ()) -> dict[str, NodeReport]:
    jobs = everyones_jobs(parse_dsv(recorded(f"{situation}-qstat-f-dsv"), JOB))
    queues = queues_of(parse_long(recorded(f"{situation}-qstat-Qf"), "Queue: "), "alice")
    nodes = nodes_of(parse_long(recorded(f"{situation}-pbsnodes-av"), ""))
    everything = terms(nodes, {queue.name: queue for queue in queues})
    found = node_reports(now, donatable(everything, "scavenger"), jobs, donated)
    return {report.name: report for report in found}


def test_a_pilot_on_a_donated_node_may_be_known_by_another_spelling_of_the_server() -> None:
    found = recorded_look("06-down", 1795241491.0, donated=("56.pbshead.example.org",))
    assert found["node01"].use is IDLE


@pytest.mark.parametrize("way", ["D", "S"])
def test_recorded_donated_nodes_that_were_deleted_or_suspended_to_make_room(way: str) -> None:
    nodes = nodes_of(parse_long(recorded_nodes()[f"05-{way}-pbsnodes-av"], ""))
    jobs = [own_job(job_record(f"05-{way}-{who}")) for who in ("preempted", "preemptor")]
    found = look(nodes, jobs, donated=(jobs[0].id,))
    assert (found["node01"].use, found["node02"].use) == (TAKEN, TAKEN)
    assert found["node04"].use is IDLE


def test_half_of_a_machine_taken_is_all_of_it_taken() -> None:
    halves = [node("n3[0]", processors=2), node("n3[1]", processors=2)]
    found = look(halves, [job("1", 1, "n3[1]")])
    assert (found["n3"].use, found["n3"].processors) == (TAKEN, 4)
    down = [halves[0], msgspec.structs.replace(halves[1], states=frozenset({"offline"}))]
    assert look(down, [])["n3"].use is AWAY


@pytest.mark.parametrize("state", ["R", "E", "S", "U"])
def test_jobs_that_run_end_or_are_suspended_hold_their_machines(state: str) -> None:
    assert look([node("n1")], [job("1", 1, "n1", state=state)])["n1"].use is TAKEN


def test_a_job_that_was_put_back_holds_nothing() -> None:
    assert look([node("n1")], [job("1", 1, "n1", state="Q")])["n1"].use is IDLE


def test_jobs_that_are_hidden_from_us_hold_machines_too() -> None:
    assert look([node("n1", 1)], [])["n1"].use is TAKEN
    assert look([node("n1", jobs=("8.s",))], [])["n1"].use is TAKEN


def test_only_machines_that_both_queues_use_wholly_are_donated() -> None:
    queues = {"workq": PbsQueue(name="workq"), "spare": PbsQueue(name="spare"), "far": PbsQueue(name="far")}
    nodes = [
        node("n1"),
        node("n2[0]", processors=2),
        node("n2[1]", processors=2, queue="far"),
        node("n3", queue="far"),
    ]
    everything = terms(nodes, queues)
    assert [each.name for each in donatable(everything, "spare")] == ["n1"]
    assert [each.name for each in donatable(everything, None)] == ["n1"]
    with pytest.raises(SchedulerError, match="no node of queue workq is used by queue far"):
        donatable(everything, "far")
    with pytest.raises(SchedulerError, match=r"donation\.partition: PBS has no queue night; there are: far,"):
        donatable(everything, "night")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [({"enabled": False}, "disabled: it takes no jobs"), ({"started": False}, "stopped: it starts no jobs")],
)
def test_a_queue_from_which_nothing_can_be_donated(changes: dict[str, bool], problem: str) -> None:
    queues = {"workq": PbsQueue(name="workq"), "spare": PbsQueue(name="spare", **changes)}  # type: ignore[arg-type]
    with pytest.raises(SchedulerError, match=f"donation.partition: queue spare is {problem}"):
        donatable(terms([node("n1")], queues), "spare")


DONATING = SiteConfig(
    backend="pbs",
    partition="workq",
    account="phys",
    extra_args=("-l", "feature=ib"),
    whole_nodes=True,
    donation=DonationConfig(mode="preemptible", partition="scavenger"),
)
TASK = TaskSize(processors=2, memory=2**30)
ORDER = order(4, 1800, TASK, tag="adaptor-ab.hpc.7", directory=SCRIPT.parent, node="node03")


def test_a_pilot_on_a_donated_node_asks_openpbs_for_one_whole_machine() -> None:
    found = " ".join(openpbs.arguments_of(ORDER, donation_terms(DONATING), shape_of(ORDER, 64, ()), SCRIPT))
    assert "-q scavenger -A phys -l select=1:ncpus=4:mpiprocs=4:host=node03 -l place=exclhost" in found
    assert "-r n" in found
    assert "feature" not in found
