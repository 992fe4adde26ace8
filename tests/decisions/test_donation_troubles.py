"""Donation where something goes wrong: schedulers, nodes, daemons and configurations."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import msgspec
import pytest

from adaptor.config.donation import DonationConfig
from adaptor.decisions import donation as stepping
from adaptor.decisions import step
from adaptor.donation.situation import NodeUse
from adaptor.model import AttemptOutcome
from adaptor.protocol.messages import Leaving, Orders, ToWorker, decode_to_worker
from adaptor.reports import NodeReport
from backends.base import PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from tests.daemon.donating_site import DonatingSite
from tests.daemon.fake_site import FakeServer
from tests.living import PATIENCE


@pytest.fixture
def site(tmp_path: Path) -> DonatingSite:
    return DonatingSite(tmp_path / "state")


def test_a_pilot_that_is_only_suspended_is_ended(site: DonatingSite, monkeypatch: pytest.MonkeyPatch) -> None:
    site.submit(16)
    site.step()
    job = site.backend.reports[site.backend.donated["n1"]].id
    site.start("n1")
    site.step()
    site.backend.set("n1", NodeUse.TAKEN)
    site.step()
    site.step()
    assert site.backend.cancelled == []
    monkeypatch.setattr(stepping, "SUSPENDED", -1.0)
    site.step()
    assert site.backend.cancelled == [job]


def test_a_job_that_went_elsewhere_after_all_does_not_count_as_a_long_wait(site: DonatingSite) -> None:
    site.submit(16)
    site.step()
    site.start("n1")
    known = site.state.memory.donation
    assert known is not None
    for use in (NodeUse.TAKEN, NodeUse.IDLE, NodeUse.TAKEN):
        site.backend.set("n1", use)
        site.step()
        memory = site.state.memory
        for pilot in memory.donated:
            memory.change(pilot, wanted_since=pilot.wanted_since and pilot.wanted_since - 3600)
    assert site.backend.cancelled == []


@pytest.mark.parametrize("use", [NodeUse.AWAY, None])
def test_a_node_that_goes_away_is_given_up(site: DonatingSite, use: NodeUse | None) -> None:
    site.submit(16)
    site.step()
    job = site.backend.reports[site.backend.donated["n2"]].id
    site.start("n2")
    if use is None:
        del site.backend.known["n2"]
    else:
        site.backend.set("n2", use)
    site.step()
    assert site.backend.cancelled == [job]
    assert "down, drained, reserved or unknown" in site.told("withdrawn")[0]


def test_while_the_scheduler_is_silent_nothing_is_used_or_taken_back(site: DonatingSite) -> None:
    site.submit(8)
    site.step()
    lent = dict(site.backend.donated)
    site.submit(100)
    site.backend.silent = SchedulerError("no answer")
    site.step()
    site.backend.silent = None
    assert site.backend.donated == lent
    assert site.backend.cancelled == []
    assert "does not answer" in site.told("withheld")[-1]


def test_a_pilot_that_waits_in_the_queue_is_withdrawn(
    site: DonatingSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.submit(4)
    site.step()
    monkeypatch.setattr(stepping, "QUEUED_TOO_LONG", -1.0)
    site.step()
    site.step()
    assert site.states()[0] == "withdrawn"


def test_tasks_do_not_wait_for_ever_for_pilots_that_never_start(
    site: DonatingSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.submit(4, "mixed")
    monkeypatch.setattr(stepping, "QUEUED_TOO_LONG", -1.0)  # the scheduler holds them back, by some limit
    for _ in range(12):
        site.step()
    leases = [order.node for order in site.backend.orders if order.node]
    assert sorted(leases) == ["n1", "n2", "n3", "n4"], "each is tried once, and later again"
    assert [order.request.p for order in site.backend.orders if not order.node]
    assert "has not started it on node" in site.told("withdrawn")[0]


def test_a_pilot_whose_worker_is_lost_is_given_up(
    site: DonatingSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.submit(16)
    site.step()
    job = site.backend.reports[site.backend.donated["n1"]].id
    worker = site.start("n1")
    monkeypatch.setattr(stepping, "WITHOUT_WORKER", -1.0)
    site.step()
    assert site.backend.cancelled == []
    site.state.core.broker.lost(worker, AttemptOutcome.LOST, time.time(), time.time())
    site.step()
    assert site.backend.cancelled == [job]


def test_a_node_that_cannot_be_used_is_left_alone_for_a_while(site: DonatingSite) -> None:
    site.submit(100)
    site.backend.on_submit = SubmitRefused("no")
    site.step()
    refused = [order.node for order in site.backend.orders]
    assert len(refused) == 1
    site.backend.on_submit = None
    site.step()
    assert refused[0] not in site.backend.donated
    assert len(site.backend.donated) == 3
    assert not site.state.memory.refusals.holdoffs.by_shape, "formal requests go on"


def test_why_idle_nodes_are_not_used_is_told_as_long_as_they_are_left_alone(tmp_path: Path) -> None:
    site = DonatingSite(tmp_path / "state", DonationConfig(mode="agent"))
    site.submit(100)
    site.backend.on_submit = SubmitRefused("the folder belongs to user 12345")
    for _ in range(3):
        site.step()
    told = site.told("withheld")[-1]
    assert "4 idle nodes left alone for now" in told
    assert "could not be used: the folder belongs to user 12345" in told
    assert "useful_time" not in told


def test_a_node_that_cannot_be_reached_does_not_keep_others_from_being_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = DonatingSite(tmp_path / "state", DonationConfig(mode="agent"))
    submit = site.backend.submit

    def one_is_dead(order: PilotOrder) -> str:
        if order.node == "n4":
            raise SubmitUncertain("n4: ssh failed")
        return submit(order)

    monkeypatch.setattr(site.backend, "submit", one_is_dead)
    site.submit(100)
    site.step()
    assert sorted(site.backend.donated) == ["n1", "n2", "n3"]
    assert "n4 could not be used: n4: ssh failed" in site.told("withheld")[-1]


def test_agents_are_started_on_several_nodes_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = DonatingSite(tmp_path / "state", DonationConfig(mode="agent"))
    site.backend.known = {
        f"n{number}": NodeReport(name=f"n{number}", processors=4, use=NodeUse.IDLE) for number in range(32)
    }
    submit, lock = site.backend.submit, threading.Lock()
    sixteen, most, now = threading.Barrier(16), [0], [0]

    def slow(order: PilotOrder) -> str:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        sixteen.wait(PATIENCE)  # so many nodes answer when all of them have been asked
        with lock:
            now[0] -= 1
            return submit(order)

    monkeypatch.setattr(site.backend, "submit", slow)
    site.submit(200)
    site.step()
    assert len(site.backend.donated) == 32
    assert most[0] == 16, "and never more"


def test_when_no_pilot_can_be_made_they_are_not_tried_for_ever(site: DonatingSite) -> None:
    site.backend.known = {
        f"n{number}": NodeReport(name=f"n{number}", processors=4, use=NodeUse.IDLE) for number in range(30)
    }
    site.backend.on_submit = SubmitRefused("no such partition")
    site.submit(1000)
    for _ in range(20):
        site.step()
    assert len(site.backend.orders) == 11
    assert "11 donated nodes in a row could not be used (no such partition)" in site.told("withheld")[-1]


def test_after_a_restart_the_daemon_knows_what_is_used(site: DonatingSite) -> None:
    site.submit(100)
    site.step()
    lent = dict(site.backend.donated)
    site.restart()
    assert {pilot.node: pilot.tag for pilot in site.state.memory.donated} == lent
    site.step()
    assert site.backend.donated == lent


class Killed(BaseException):
    """The daemon's process ends at this very point."""


@pytest.mark.parametrize("reached", [False, True])
def test_a_daemon_that_is_killed_while_it_makes_a_pilot(
    site: DonatingSite, monkeypatch: pytest.MonkeyPatch, reached: bool
) -> None:
    site.submit(4)
    site.backend.on_submit = Killed()  # type: ignore[assignment]
    site.backend.takes_it_all_the_same = reached
    with pytest.raises(Killed):
        site.step()
    (node,) = [order.node for order in site.backend.orders]
    site.backend.on_submit = None
    site.restart()
    site.step()
    assert [pilot.node for pilot in site.state.memory.donated] == [node], "it is not lent a second time"
    assert list(site.backend.donated) == ([node] if reached else [])
    (pilot,) = site.state.memory.donated
    site.state.memory.change(pilot, submitted=pilot.submitted - 3600)
    monkeypatch.setattr(stepping, "QUEUED_TOO_LONG", 7200.0)
    site.step()
    site.step()
    assert site.states() == (["queued"] if reached else ["refused", "queued"])
    assert len(site.backend.donated) == 1


@pytest.mark.parametrize("mode", ["preemptible", "agent"])
def test_pilots_end_once_their_site_does_not_donate_in_that_way_any_more(
    site: DonatingSite, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    site.submit(4)
    site.step()
    (lease,) = site.state.memory.donated
    site.start(lease.node)
    site.step()
    if mode == "agent":
        lease = site.state.memory.change(lease, job=f"agent:{lease.node}:{lease.tag}")
        site.state.write_down(lease)
        site.backend.reports.clear()  # the scheduler has never heard of it
    else:
        site.config = msgspec.structs.replace(site.config, donation=None)
    site.restart()
    worker = site.greet(site.state.memory.donated[0])
    told: list[ToWorker] = []

    async def listen(server: FakeServer, identity: bytes, data: bytes) -> None:
        told.append(decode_to_worker(data))

    monkeypatch.setattr(FakeServer, "send_worker", listen)
    site.step()
    if mode == "agent":  # the scheduler ends the other one
        assert any(isinstance(each, Orders) and each.leave for each in told)
    assert "no longer allows this pilot" in site.told("withdrawn")[0]
    site.leave(worker, Leaving.TOLD)
    for _ in range(4):
        site.step()
    assert site.states()[0] == {"preemptible": "cancelled", "agent": "vanished"}[mode]
    assert not [id for id in site.backend.cancelled if id.startswith("agent:")]


def test_what_nobody_has_watched_teaches_nothing(site: DonatingSite) -> None:
    bag = site.submit(4)
    site.step()
    known = site.state.memory.donation
    assert known is not None
    known.observed = time.time() - 7200
    known.seen.begin_anew()
    for node in site.backend.known:
        known.seen.begins(node, time.time() - 7300, time.time() - 7300)
    site.step()
    assert sum(known.seen.learner.idleness.seconds) < 60
    assert time.time() - (known.seen.since("n1") or 0) < 60
    assert bag


def test_a_step_does_not_go_on_using_nodes_by_an_old_look(
    site: DonatingSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "LONGEST", 0.0)
    site.submit(100)
    site.step()
    assert not site.backend.donated
    assert site.state.wake.is_set(), "the rest comes soon"
    monkeypatch.undo()
    site.step()
    assert len(site.backend.donated) == 4
