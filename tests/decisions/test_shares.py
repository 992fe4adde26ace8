"""Two sites of different prices: where the tasks of bags go that are to be done for a cost or by a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adaptor.api import BagView
from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.entries import Budget
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.steering import Aim, Progress
from adaptor.budget.provisioning.task_shares import CostSplit
from adaptor.budget.provisioning.task_time import TaskTime
from adaptor.daemon.client.credits import why_paused
from adaptor.daemon.treasury import Costs
from adaptor.decisions import shares
from adaptor.decisions.memory import Memory, ShareQuestion
from adaptor.decisions.offers import _progress, aim_of, task_time
from adaptor.forecast.bag_facts import BagFacts
from adaptor.guard_rails import EarlySignal
from adaptor.model import Request
from adaptor.resources import AS_ASKED
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.facts import facts_of
from backends.base import SchedulerError
from tests.daemon.fake_sites import FakeSites

COSTS = {
    name: Costs(Tariff(price_explicit=price, price_donated=1.0)) for name, price in (("near", 9), ("far", 3))
}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[FakeSites]:
    """`far` costs a third of `near`."""
    two = FakeSites(tmp_path / "state", costs=COSTS)
    yield two
    two.journal.close()


def rounds(two: FakeSites, count: int = 2) -> dict[str, int]:
    for _ in range(count):
        two.step("near", "far")
    return two.asked()


def test_a_cheap_bag_asks_at_the_cheap_site_alone(two: FakeSites) -> None:
    two.submit_bag(16, prefer="cheap")
    asked = rounds(two)
    assert asked["near"] == 0
    assert asked["far"] > 0
    assert "16 tasks at far (0.05" in two.told("far", "divided")[0]
    assert "gets none of" in two.told("near", "withheld")[-1]


def test_a_deadline_has_the_dear_site_do_what_the_cheap_one_cannot(two: FakeSites) -> None:
    two.submit_bag(48, deadline=time.time() + 330, time=60.0)
    asked = rounds(two)
    assert asked["far"] >= 8
    assert 0 < asked["near"] < 8
    assert "cheapest within 5m" in two.told("near", "divided")[0]


def test_an_ample_budget_is_used_for_time(two: FakeSites) -> None:
    two.submit_bag(16, budget=40_000_000)
    assert rounds(two) == {"near": 8, "far": 8}


def test_a_bag_without_aims_is_divided_by_who_is_done_first(two: FakeSites) -> None:
    two.submit_bag(16)
    assert rounds(two) == {"near": 8, "far": 8}
    assert "credits" not in two.told("near", "divided")[0]


def test_a_fast_bag_is_divided_as_one_without_aims(two: FakeSites) -> None:
    """A plan of whole rounds of equal tasks leaves processors idle that the last tasks could use."""
    two.submit_bag(12, prefer="fast")
    assert rounds(two) == {"near": 6, "far": 6}
    assert "credits" not in two.told("near", "divided")[0]


def test_a_budget_that_is_too_small_goes_to_the_cheap_site(two: FakeSites) -> None:
    bag = two.submit_bag(400, budget=200_000)
    rounds(two, 4)
    assert two.asked()["near"] == 0
    assert "what is left goes where a task costs least" in two.told("far", "divided")[0]
    ledger = two.sites["far"].core.treasury.ledger
    assert 0 < ledger.of_bag(bag.id).reserved <= 200_000


def view(bag: int) -> BagView:
    return BagView(
        id=bag, name="b", state="running", sites=[], tasks=400, waiting=400, running=0, done=0, failed=0,
        cancelled=0, retried=0, submitted=0.0, ended=None, cpus=1, mean_runtime=None, output="/nowhere",
    )  # fmt: skip


def test_a_bag_that_no_site_holds_is_paused_and_says_what_it_needs(two: FakeSites) -> None:
    bag = two.submit_bag(400, budget=8_000)  # 9.6 s of a processor
    rounds(two)
    assert two.asked() == {"near": 0, "far": 0}
    told = why_paused(two.sites["near"].core, view(bag.id))
    assert f"bag {bag.id} is paused" in told
    assert f"adaptor change {bag.id} --budget" in told


def test_a_cheap_site_whose_budget_holds_no_request_any_more_is_left_out(tmp_path: Path) -> None:
    """A task of a minute costs 0.05 credits there, a request for it, which may end 20 s late, 0.067."""
    left = Budget(amount=60_000, site="far")
    costs = {
        "near": Costs(Tariff(price_explicit=9, price_donated=1, grace=20)),
        "far": Costs(Tariff(price_explicit=3, price_donated=1, grace=20), left),
    }
    two = FakeSites(tmp_path / "state", costs=costs)
    two.submit_bag(16, prefer="cheap")
    asked = rounds(two, 3)
    assert asked["far"] == 0
    assert asked["near"] > 0
    two.journal.close()


def test_a_bag_whose_budget_holds_a_request_at_the_dear_site_alone_runs_there(tmp_path: Path) -> None:
    costs = {
        "near": Costs(Tariff(price_explicit=9, price_donated=1)),
        "far": Costs(Tariff(price_explicit=3, price_donated=1, grace=600)),
    }
    two = FakeSites(tmp_path / "state", costs=costs)
    two.submit_bag(16, budget=200_000, signal=EarlySignal("SIGUSR1", 60.0))  # paid whole, with the grace
    asked = rounds(two, 3)
    assert asked["far"] == 0
    assert asked["near"] > 0
    two.journal.close()


def test_a_cheap_site_that_is_silent_for_a_moment_is_waited_for(two: FakeSites) -> None:
    two.submit_bag(16, prefer="cheap")
    two.step("near")
    two.backends["far"].silent = SchedulerError("squeue: connection refused")
    two.sites["far"].memory.seen = two.sites["near"].memory.seen
    two.step("far", "near", "near")
    assert two.asked() == {"near": 0, "far": 0}


def test_what_is_committed_is_without_nodes_that_were_given_back(two: FakeSites) -> None:
    bag = two.submit_bag(8, prefer="fast")
    core = two.sites["near"].core
    shared = {bag.id: 1.0}
    entry = core.treasury.ledger.reserve(7, "near", Request(8, 3600), "explicit", shared, 0.0, AS_ASKED)
    core.treasury.ledger.give_back(7, 4, 900.0, 900.0)
    known = _progress(core.snapshot("near", time.time()), facts_of(core.broker.state, bag), 8)
    assert known.committed == pytest.approx(in_credits(entry.amount) * (4 * 3600 + 4 * 900) / (8 * 3600))


def offer_facts(two: FakeSites, bag: Bag) -> BagFacts:
    return facts_of(two.sites["near"].core.broker.state, bag)


def test_what_is_preferred(two: FakeSites) -> None:
    ledger = two.sites["near"].core.treasury.ledger

    def preferred(**wishes: Any) -> str:
        return aim_of(ledger, offer_facts(two, two.submit_bag(4, **wishes))).prefer

    assert preferred(deadline=time.time() + 99) == "cheap"
    assert preferred(deadline=time.time() + 99, prefer="fast") == "fast"
    assert preferred(budget=1_000_000) == "fast"


def test_runtimes_are_those_of_the_site_else_of_the_others_else_assumed(two: FakeSites) -> None:
    state = two.sites["near"].core.broker.state
    bag = two.submit_bag(40)

    def time_at(site: str, bag: Bag = bag, elapsed: tuple[float, ...] = (), at: str = "near") -> TaskTime:
        starts, facts = tuple(-each for each in elapsed), offer_facts(two, bag)
        known = facts.known.running_since(starts)
        for learner in facts.learned.values():
            known.add_all(
                learner.seen.finished, learner.seen.total, learner.seen.squares, learner.seen.longest
            )
        return task_time(msgspec.structs.replace(facts, attempts={at: starts}, known=known), site, now=0.0)

    assert time_at("near").mean == 60, "initial_tr"
    for _ in range(12):
        state.learner(bag.id, "far").finished(20.0)
    assert time_at("near").mean == pytest.approx(20)
    assert time_at("near", at="far", elapsed=(100.0,) * 12).mean > 50, "no faster than where long ones run"
    state.learner(bag.id, "near").finished(5.0)
    assert time_at("near").mean == pytest.approx(5)
    assert time_at("near", elapsed=(100.0,) * 1000).mean > 50, "the running ones have run longer"
    assert time_at("far").deviation == pytest.approx(0, abs=1e-3)
    no_time_at_all = two.submit_bag(40)
    for _ in range(12):
        state.learner(no_time_at_all.id, "far").finished(0.0)
    assert time_at("far", no_time_at_all).mean == pytest.approx(1e-3)
    hinted = two.submit_bag(40, time=7.0)
    assert time_at("near", hinted).mean == 7


def question(bag: int, now: float, waiting: int) -> ShareQuestion:
    return ShareQuestion(bag=bag, aim=Aim(), progress=Progress(now=now, waiting=waiting), offers={})


def test_an_answer_holds_for_some_seconds_unless_the_question_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def answer(_aim: Aim, progress: Progress, _offers: object) -> CostSplit:
        asked.append(progress.waiting)
        return CostSplit(by_site={}, seconds=1.0, urgent=False, reason="because")

    monkeypatch.setattr(shares, "split_tasks", answer)
    memory = Memory()
    for now, waiting, expected in (
        (0.0, 10, [10]),
        (1.0, 10, [10]),
        (1.5, 9, [10, 9]),
        (1.5 + shares.INTERVAL, 9, [10, 9, 9]),
        (-100.0, 9, [10, 9, 9, 9]),  # a clock that was set back
    ):
        memory = shares.answered(memory, [question(1, now, waiting)])
        assert asked == expected
    assert memory.shares.keys() == {1}
    assert shares.answered(memory, []).shares == {}


def test_a_bag_that_cannot_be_weighed_takes_no_answer_from_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(_aim: Aim, progress: Progress, _offers: object) -> CostSplit:
        if progress.waiting == 13:
            raise BudgetError("no site has a processor for us")
        return CostSplit(by_site={}, seconds=1.0, urgent=False, reason="because")

    monkeypatch.setattr(shares, "split_tasks", answer)
    questions = [question(bag, 0.0, waiting) for bag, waiting in enumerate((10, 13, 16))]
    memory = shares.answered(Memory(), questions)
    found = shares.targets(memory, range(3))
    assert [bag for bag, target in found.items() if target is None] == [1]
    told = "the sites for bag 1 cannot be compared by cost and time: no site has a processor for us"
    assert memory.shares_problem == told
