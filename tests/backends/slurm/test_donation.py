"""What others do with nodes that may be donated, from recorded and made-up rows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.donation.situation import NodeUse
from adaptor.reports import NodeReport
from backends.base import SchedulerError
from backends.observed.rows import ReservationRow
from backends.slurm.donation import donatable, node_reports
from backends.slurm.rows import NodeRow, QueueRow
from tests.backends.slurm.slurm_rows import NOW, job, node

IDLE, TAKEN, AWAY = NodeUse.IDLE, NodeUse.TAKEN, NodeUse.AWAY


def site(**donation: str) -> SiteConfig:
    return SiteConfig(backend="slurm", donation=DonationConfig(mode="preemptible", **donation))


def look(
    nodes: list[NodeRow],
    jobs: list[QueueRow],
    donated: tuple[str, ...] = (),
    reservations: Sequence[ReservationRow] = (),
) -> dict[str, NodeReport]:
    return {report.name: report for report in node_reports(NOW, nodes, jobs, donated, reservations)}


def use_of(state: str, jobs: list[QueueRow], donated: tuple[str, ...] = (), allocated: int = 0) -> NodeUse:
    return look([node("n1", allocated, state)], jobs, donated)["n1"].use


def pilot(**given: object) -> QueueRow:
    """A pilot of n1 that runs, job 9."""
    return job("9", 4, ("n1",), **{"end": NOW + 500, "limit": 600.0, **given})


def test_a_pilot_on_a_donated_node_that_was_told_to_leave_has_lost_its_node() -> None:
    assert use_of("allocated", [pilot(end=NOW + 5)], ("9",), 4) is TAKEN


def test_a_pilot_on_a_donated_node_that_ends_lets_its_node_go_to_whoever_waits() -> None:
    ending = pilot(state="COMPLETING", end=NOW - 1)
    assert use_of("completing", [ending], ("9",), 4) is IDLE
    assert use_of("completing", [ending, job("1", 1)], ("9",), 4) is TAKEN
    held = job("1", 1, reason="JobHeldUser")
    assert use_of("completing", [ending, held], ("9",), 4) is IDLE, "it does not wait for nodes"


@pytest.mark.parametrize(
    "state", ["RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "A_NEW_ONE"]
)
def test_any_job_that_holds_something_takes_the_node(state: str) -> None:
    narrow = job("1", 1, ("n1",), state=state)
    assert use_of("mixed", [narrow], allocated=1) is TAKEN
    assert use_of("idle", [narrow]) is TAKEN, "squeue was asked after sinfo"


def test_jobs_of_other_partitions_take_the_nodes_that_they_share() -> None:
    assert use_of("mixed", [job("1", 1, ("n1",), partitions=("elsewhere",))], allocated=1) is TAKEN


def test_jobs_that_are_hidden_from_us_take_nodes_too() -> None:
    assert use_of("mixed", [], allocated=1) is TAKEN
    assert use_of("completing", []) is TAKEN


@pytest.mark.parametrize(
    "state", ["down", "drained", "draining", "idle*", "idle~", "idle#", "idle$", "maint", "fail", "unknown"]
)
def test_nodes_that_take_no_work_are_away(state: str) -> None:
    assert use_of(state, []) is AWAY
    assert use_of(state, [pilot()], ("9",), 4) is AWAY


@pytest.mark.parametrize("state", ["planned", "idle-"])
def test_a_node_that_is_kept_for_a_job_we_do_not_see_is_planned_at_once(state: str) -> None:
    report = look([node("n1", 0, state)], [])["n1"]
    assert (report.use, report.planned) == (IDLE, NOW)
    seen = job("1", 4, planned_nodes=("n1",), start=NOW + 900)
    assert look([node("n1", 0, state)], [seen])["n1"].planned == NOW + 900


def test_nodes_must_be_in_both_partitions() -> None:
    rows = [node("n1"), node("n2"), node("n2", partition="spare"), node("n3", partition="spare")]
    assert [row.node for row in donatable(rows, site())] == ["n1", "n2"]
    assert [row.node for row in donatable(rows, site(partition="spare"))] == ["n2"]


@pytest.mark.parametrize(
    ("partition", "problem"),
    [
        ("night", "donation.partition: Slurm has no partition night with nodes; there are: batch, far, shut"),
        ("far", "donation.partition: no node of partition batch is in partition far: name one"),
        ("shut", "donation.partition: partition shut is drained: it starts no jobs at the moment"),
    ],
)
def test_a_partition_from_which_nothing_can_be_donated(partition: str, problem: str) -> None:
    shut = msgspec.structs.replace(node("n1", partition="shut"), available="drain")
    rows = [node("n1"), shut, node("n9", partition="far")]
    with pytest.raises(SchedulerError, match=problem):
        donatable(rows, site(partition=partition))


def test_where_the_site_itself_starts_nothing_nothing_is_donated() -> None:
    rows = [msgspec.structs.replace(node("n1"), available="down")]
    with pytest.raises(SchedulerError, match="partition batch is down"):
        donatable(rows, site())
