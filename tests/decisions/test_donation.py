"""Donation at a site: which pilots are submitted and ended, for whom, and what is told of it."""

from __future__ import annotations

import asyncio
import math
import time
from pathlib import Path

import msgspec
import pytest

from adaptor.config.donation import DonationConfig
from adaptor.daemon.client.credits import change_budget
from adaptor.daemon.clock import midnight
from adaptor.daemon.step import step
from adaptor.decisions import donation_memory as lender
from adaptor.donation.situation import NodeUse
from adaptor.protocol.messages import Ending, Leaving, Result
from adaptor.reports import JobState, NodeReport
from adaptor.scheduling.workers import WorkerTable
from adaptor.units import Duration
from tests.daemon.donating_site import PREEMPTIBLE, DonatingSite


@pytest.fixture
def site(tmp_path: Path) -> DonatingSite:
    return DonatingSite(tmp_path / "state")


def with_rules(tmp_path: Path, **rules: object) -> DonatingSite:
    return DonatingSite(tmp_path / "state", msgspec.structs.replace(PREEMPTIBLE, **rules))


def test_idle_nodes_are_used_one_pilot_each(site: DonatingSite) -> None:
    site.submit(100)
    site.step()
    assert sorted(site.backend.donated) == ["n1", "n2", "n3", "n4"]
    assert {(order.request.p, order.request.tr) for order in site.backend.orders} == {(4, 7200)}


def test_no_more_are_used_than_the_tasks_need(site: DonatingSite) -> None:
    site.submit(5)
    site.step()
    assert len(site.backend.donated) == 2
    site.step()
    assert len(site.backend.donated) == 2, "their workers are on their way"


def test_nothing_is_used_for_a_bag_that_only_wants_formal_requests(site: DonatingSite) -> None:
    site.submit(100, "explicit")
    site.step()
    assert not site.backend.donated
    assert site.backend.orders
    assert not site.backend.asked_beside


def test_a_transparent_bag_makes_no_formal_request(site: DonatingSite) -> None:
    site.submit(100)
    for _ in range(3):
        site.step()
    assert all(order.node for order in site.backend.orders)


def test_formal_requests_of_a_mixed_bag_are_for_what_pilots_do_not_take(site: DonatingSite) -> None:
    site.submit(16, "mixed")
    site.step()
    assert len(site.backend.donated) == 4
    assert [order for order in site.backend.orders if not order.node] == []
    site.submit(3, "mixed")
    site.step()
    formal = [order.request.p for order in site.backend.orders if not order.node]
    assert sum(formal) == 3


def test_pilots_do_not_count_among_the_pending_requests(site: DonatingSite) -> None:
    site.submit(16, "transparent")
    site.step()
    site.submit(8, "explicit")
    site.step()
    assert [order for order in site.backend.orders if not order.node]


def test_a_node_that_is_taken_goes_and_its_tasks_wait_again(site: DonatingSite) -> None:
    bag = site.submit(16)
    site.step()
    worker = site.start("n1")
    assert site.holding(worker) == 4
    site.leave(worker, Leaving.SIGNAL)
    site.backend.say(site.backend.donated["n1"], JobState.PREEMPTED)
    site.backend.set("n1", NodeUse.TAKEN)
    site.step()
    assert "n1" not in site.backend.donated
    assert site.states().count("preempted") == 1
    rows = site.journal.connection.execute(
        "SELECT charged, state FROM task WHERE bag = ? AND attempts > 0", (bag,)
    ).fetchall()
    assert len(rows) == 4
    assert set(rows) == {(0, "waiting")}


def test_the_scheduler_preempts_with_its_own_grace_time(site: DonatingSite) -> None:
    site.submit(16)
    site.step()
    site.start("n1")
    site.step()
    site.backend.set("n1", NodeUse.TAKEN)
    site.step()
    assert site.backend.cancelled == []


def test_a_step_goes_through_the_workers_a_few_times_however_many_pilots(
    site: DonatingSite,
) -> None:
    class Counted(WorkerTable):
        looks = 0

        def values(self):  # type: ignore[no-untyped-def]
            self.looks += 1
            return super().values()

    state = site.state.core.broker.state
    looks = []
    for nodes in (4, 40):
        site.backend.known = {
            f"n{number}": NodeReport(name=f"n{number}", processors=4, use=NodeUse.IDLE)
            for number in range(1, nodes + 1)
        }
        site.submit(4 * nodes + 4)
        site.step()
        for node in list(site.backend.donated):
            if f"w-{node}" not in state.workers:
                site.start(node)
        site.step()
        counted = Counted()
        for id, worker in state.workers.items():
            counted[id] = worker
        state.workers = counted
        asyncio.run(step(site.state))
        looks.append(counted.looks)
    assert looks[0] == looks[1]


def test_a_node_that_was_just_given_back_is_not_donated_again_at_once(
    site: DonatingSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.submit(16)
    site.step()
    site.leave(site.start("n1"), Leaving.SIGNAL)
    site.backend.say(site.backend.donated["n1"], JobState.PREEMPTED)
    site.step()
    assert "n1" not in site.backend.donated, "the local job is not seen there yet"
    monkeypatch.setattr(lender, "_HANDOVER", 0.0)
    site.step()
    assert "n1" in site.backend.donated


def test_local_jobs_do_not_wait_for_tasks_that_ignore_sigterm(site: DonatingSite) -> None:
    site.submit(4)
    site.step()
    (lease,) = site.state.memory.donated
    assert site.state.grace_of(lease) <= 3.0 < float(site.config.grace_time)


def test_agents_are_told_to_leave_when_a_local_job_is_there(tmp_path: Path) -> None:
    site = DonatingSite(tmp_path / "state", DonationConfig(mode="agent"))
    site.submit(16)
    site.step()
    job = site.backend.reports[site.backend.donated["n1"]].id
    site.start("n1")
    site.backend.set("n1", NodeUse.TAKEN)
    site.step()
    assert site.backend.cancelled == [job]


def test_a_formal_request_is_for_nodes_that_no_agent_takes_in_the_same_step(tmp_path: Path) -> None:
    """The scheduler does not show what agents use."""
    site = DonatingSite(tmp_path / "state", DonationConfig(mode="agent", max_nodes=1))
    site.submit(100)
    site.submit(16, "explicit", cpus=4)
    site.step()
    assert len(site.backend.donated) == 1
    assert len([order for order in site.backend.orders if not order.node]) == 1


def test_rules_hold(tmp_path: Path) -> None:
    site = with_rules(tmp_path, max_nodes=2, reserve_nodes=1)
    site.submit(100)
    site.step()
    assert len(site.backend.donated) == 2
    assert "max_nodes" in site.told("withheld")[-1]


def test_a_node_that_is_planned_is_used_until_then_and_no_longer(site: DonatingSite) -> None:
    for number in range(1, 4):
        site.backend.set(f"n{number}", NodeUse.TAKEN)
    site.backend.set("n4", planned=time.time() + 1800)
    site.submit(100)
    site.step()
    (order,) = site.backend.orders
    assert order.node == "n4"
    assert 1700 <= order.request.tr <= 1800


def test_a_node_that_is_planned_soon_is_not_donated(site: DonatingSite) -> None:
    for number in range(1, 5):
        site.backend.set(f"n{number}", planned=time.time() + 120)
    site.submit(100)
    site.step()
    assert not site.backend.orders
    assert "planned sooner" in site.told("withheld")[-1]


def test_a_pilot_is_no_longer_than_its_own_limit(tmp_path: Path) -> None:
    site = with_rules(tmp_path, max_tr=Duration(900))
    site.submit(100)
    site.step()
    assert {order.request.tr for order in site.backend.orders} == {900}


def test_a_pilot_is_too_short_for_every_task(tmp_path: Path) -> None:
    site = with_rules(tmp_path, max_tr=Duration(900))
    site.submit(10, time=1000.0)
    site.step()
    assert not site.backend.orders
    assert "(max_tr)" in site.told("withheld")[-1]


def test_a_pilot_that_nobody_needs_any_more_is_given_back(site: DonatingSite) -> None:
    bag = site.submit(4)
    site.step()
    (node,) = site.backend.donated
    worker = site.start(node)
    site.state.core.broker.cancel(bag)
    site.leave(worker, Leaving.TOLD)
    site.step()
    site.step()
    assert site.states() == ["cancelled"]
    assert "no task is left" in site.told("withdrawn")[0]


def test_what_was_learned_of_idle_periods_outlives_the_daemon(site: DonatingSite) -> None:
    site.submit(4)
    site.step()
    site.backend.set("n1", NodeUse.TAKEN)
    site.step()
    known = site.state.memory.donation
    assert known is not None
    site.journal.keep_idleness("here", known.seen.learner.idleness)
    learned = known.seen.learner.idleness
    assert sum(learned.ends) == 1
    site.restart()
    assert site.state.memory.donation is not None
    assert site.state.memory.donation.seen.learner.idleness == learned


def test_a_pilot_is_reserved_at_the_donated_price(tmp_path: Path) -> None:
    site = DonatingSite(tmp_path / "state")
    site.config = msgspec.structs.replace(
        site.config, price=msgspec.structs.replace(site.config.price, explicit=1.0, donated=0.25)
    )
    site.restart()
    bag = site.submit(4)
    site.step()
    tariff = site.state.core.treasury.ledger.tariff("here")
    expected = tariff.reservation("donated", 4, 7200)
    assert site.state.core.treasury.ledger.of_bag(bag).reserved == expected
    assert expected < tariff.reservation("explicit", 4, 7200) / 3


def test_a_pilot_is_cut_to_what_the_budget_leaves(tmp_path: Path) -> None:
    site = DonatingSite(tmp_path / "state")
    bag = site.submit(100)
    change_budget(site.state.core, bag, 3.0)
    site.step()
    ledger = site.state.core.treasury.ledger
    assert 0 < ledger.of_bag(bag).reserved <= 3_000_000
    assert site.backend.orders[0].request.tr < 7200
    assert all(pilot.bag == bag for pilot in site.state.memory.donated)
    for _ in range(5):
        site.step()
    assert ledger.of_bag(bag).reserved <= 3_000_000


def test_the_nodes_of_a_step_share_what_a_budget_leaves(tmp_path: Path) -> None:
    site = DonatingSite(tmp_path / "state")
    bag = site.submit(100)
    change_budget(site.state.core, bag, 3.0)
    site.step()
    assert sorted(site.backend.donated) == ["n1", "n2", "n3", "n4"]
    times = {order.request.tr for order in site.backend.orders}
    assert max(times) - min(times) <= 1
    reserved = site.state.core.treasury.ledger.of_bag(bag).reserved
    assert 2_900_000 <= reserved <= 3_000_000


def test_the_price_of_formal_requests_shortens_no_pilot_on_a_donated_node(tmp_path: Path) -> None:
    times = []
    for explicit in (1.0, 9.0):
        site = DonatingSite(tmp_path / f"state {explicit}")
        price = msgspec.structs.replace(site.config.price, explicit=explicit, donated=1.0)
        site.config = msgspec.structs.replace(site.config, price=price)
        site.restart()
        change_budget(site.state.core, site.submit(100), 3.0)
        site.step()
        times.append([order.request.tr for order in site.backend.orders])
    assert times[0]
    assert times[0] == times[1]


def test_a_node_reserves_no_credits_for_longer_than_a_bag_of_known_runtimes_can_use_it(
    site: DonatingSite,
) -> None:
    """The last task of a bag reserved all credits for 7 hours, so its other pilots were ended."""
    bag = site.submit(8, time=100.0)
    change_budget(site.state.core, bag, 9.0)
    site.step()
    assert len(site.backend.donated) == 2
    assert all(200 < order.request.tr < 1200 for order in site.backend.orders)
    assert site.state.core.treasury.ledger.of_bag(bag).reserved < 4_500_000


def test_a_bag_without_credits_does_not_stand_in_the_way_of_others(site: DonatingSite) -> None:
    poor = site.submit(100)
    change_budget(site.state.core, poor, 0.0001)
    site.submit(8)
    site.step()
    assert len(site.backend.donated) == 2
    assert all(pilot.bag is None for pilot in site.state.memory.donated)
    assert "credits are left" in site.told("withheld")[-1]


def test_nodes_are_used_for_those_whose_tasks_can_finish_there(site: DonatingSite) -> None:
    for name in site.backend.known:
        site.backend.set(name, planned=time.time() + 1800)
    long = site.submit(100, time=6000.0)
    change_budget(site.state.core, long, 1000.0)
    site.submit(8, time=60.0)
    site.step()
    assert len(site.backend.donated) == 2
    assert all(pilot.bag is None for pilot in site.state.memory.donated)


def test_a_task_that_does_not_fit_into_a_node_is_not_what_it_is_used_for(site: DonatingSite) -> None:
    site.submit(3, cpus=8)
    site.step()
    assert not site.backend.orders
    assert "a task needs 8 processors, and no idle node has that many" in site.told("withheld")[-1]


def test_a_node_without_the_memory_does_not_hide_one_that_has_it(site: DonatingSite) -> None:
    for name, node in site.backend.known.items():
        memory = (4 if name == "n1" else 1) << 30
        site.backend.known[name] = msgspec.structs.replace(node, memory=memory)
    site.submit(1, memory=2 << 30)
    site.step()
    assert list(site.backend.donated) == ["n1"]


def test_memory_is_counted_where_the_scheduler_tells_it(site: DonatingSite) -> None:
    for name, node in site.backend.known.items():
        site.backend.known[name] = msgspec.structs.replace(node, memory=1 << 30)
    site.submit(3, memory=2 << 30)
    site.step()
    assert not site.backend.orders
    assert "no idle node has the memory" in site.told("withheld")[-1]
    site.submit(3, memory=1 << 29)
    site.step()
    assert len(site.backend.donated) == 2, "two of them fit into the memory of a node"


def test_hours_close(tmp_path: Path) -> None:
    hour = time.localtime().tm_hour
    site = with_rules(tmp_path, hours=(f"{(hour + 2) % 24:02}:00-{(hour + 3) % 24:02}:00",))
    site.submit(10)
    site.step()
    assert not site.backend.orders
    assert "hours" in site.told("withheld")[-1]
    assert math.isfinite(site.state.memory.donation.closes(time.time(), midnight(time.time())))  # type: ignore[union-attr]


def test_a_node_that_is_left_because_the_hours_close_was_not_taken(site: DonatingSite) -> None:
    site.submit(1, allocation="mixed")
    site.step()
    (node,) = site.backend.donated
    worker = site.start(node)
    hour = time.localtime().tm_hour
    hours = (f"{(hour + 2) % 24:02}:00-{(hour + 3) % 24:02}:00",)
    site.config = msgspec.structs.replace(
        site.config, donation=msgspec.structs.replace(PREEMPTIBLE, hours=hours)
    )
    site.restart()
    site.step()
    assert site.told("withdrawn")[-1] == "outside the hours in which idle nodes may be used"
    broker = site.state.core.broker
    (key,) = broker.state.workers[worker].held
    ended = Result(key, Ending.ENDED, started=time.time() - 60, wall=60.0, signal=15)
    broker.goodbye(worker, Leaving.SIGNAL, [ended], time.time())
    asyncio.run(site.state.core.commit())
    assert site.journal.connection.execute("SELECT outcome FROM attempt").fetchall() == [("walltime",)]
    (bag,) = broker.state.bags.values()
    assert bag.preempted == {}


def test_a_held_task_goes_back_to_a_donated_node_where_its_request_starts_late(site: DonatingSite) -> None:
    """Three nodes were taken from it; then the formal request that it waits for is predicted for tomorrow."""
    site.submit(1, allocation="mixed")
    broker, now = site.state.core.broker, time.time()
    (bag,) = broker.state.bags.values()
    for _ in range(3):
        bag.preempt(0, 60.0)
    site.step()
    assert not site.backend.donated
    (pilot,) = site.state.pilots.values()
    assert not pilot.node
    site.state.memory.change(pilot, predicted_start=now + 86400)
    site.step()
    assert len(site.backend.donated) == 1
    assert site.holding(site.start(*site.backend.donated)) == 1


def test_the_request_of_a_held_task_that_starts_soon_is_waited_for(site: DonatingSite) -> None:
    site.submit(1, allocation="mixed")
    (bag,) = site.state.core.broker.state.bags.values()
    for _ in range(3):
        bag.preempt(0, 60.0)
    site.step()
    (pilot,) = site.state.pilots.values()
    site.state.memory.change(pilot, predicted_start=time.time() + 1)
    site.step()
    assert not site.backend.donated
