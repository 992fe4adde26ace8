"""What a forecast begins with: what is known of tasks, by user or history, and until when pilots run."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

from adaptor.backoff import Holdoff
from adaptor.decisions.failures.shape_backoffs import Failures, ShapeHoldoffs
from adaptor.decisions.forecasting.known_bag import known_bag
from adaptor.model import Estimate
from adaptor.reports import Hold, Wait
from adaptor.resources import OwnNeeds, TaskSize
from adaptor.runtimes.known import EarlierTasks
from adaptor.scheduling.facts import facts_of
from tests.daemon.budgeted_site import steps
from tests.daemon.fake_site import FakeSite

EARLIER = EarlierTasks(kind="fit.py", tasks=12, mean=300.0, factor=3.0, low=200.0, high=400.0)


@pytest.mark.parametrize(
    ("earlier", "time", "guess", "surety"),
    [
        ({}, None, 15.0, 1.5),
        ({"here": EARLIER}, None, 300.0, math.log(3.0)),
        ({"elsewhere": EARLIER}, None, 15.0, 1.5),
        ({"here": EARLIER}, 100.0, 100.0, math.log(2.0)),
    ],
)
def test_the_first_guess(
    tmp_path: Path, earlier: dict[str, EarlierTasks], time: float | None, guess: float, surety: float
) -> None:
    site = FakeSite(tmp_path / "state")
    core = site.state.core
    bag = core.broker.state.bags[site.submit_bag(5, time=time)]
    core.broker.state.know_earlier(bag, earlier)
    snapshot = core.snapshot("here", core.now())
    known = known_bag(snapshot, facts_of(core.broker.state, bag))
    assert (known.runtimes.guess, known.runtimes.surety) == (pytest.approx(guess), pytest.approx(surety))
    assert known.sites[0].learner.estimate == core.broker.state.learner(bag.id, "here").estimate
    assert known.sites[0].learner.factor == core.terms["here"].growth_factor
    assert known.sites[0].view.heuristic == snapshot.sites["here"].heuristic
    site.journal.close()


def test_the_first_guess_is_the_mean_of_what_each_task_is_said_to_take(tmp_path: Path) -> None:
    site = FakeSite(tmp_path / "state")
    core = site.state.core
    bag = core.broker.state.bags[site.submit_bag(2)]
    bag.sizes.add({task: OwnNeeds(time=100.0 + 200.0 * task) for task in range(2)})
    known = known_bag(core.snapshot("here", core.now()), facts_of(core.broker.state, bag))
    assert known.runtimes.guess == 200.0
    assert known.sites[0].learner.known.told == 200.0
    assert not known.blind
    site.journal.close()


def test_no_pilot_is_foreseen_while_requests_for_such_tasks_fail(tmp_path: Path) -> None:
    site = FakeSite(tmp_path / "state")
    core = site.state.core
    bag = core.broker.state.bags[site.submit_bag(5)]
    facts = facts_of(core.broker.state, bag)
    snapshot = core.snapshot("here", core.now())
    assert known_bag(snapshot, facts).sites[0].open
    shape = TaskSize(), None
    for until in (snapshot.now + 3600, snapshot.now - 1):  # the next one is not better for being due
        failed = Holdoff(failures=1, until=until, reason="its QOS wants more")
        failures = Failures(stuck=ShapeHoldoffs(by_shape={(shape, ""): failed}))
        here = msgspec.structs.replace(snapshot.here, failures=failures)
        failing = msgspec.structs.replace(snapshot, sites={"here": here})
        assert not known_bag(failing, facts).sites[0].open
    site.journal.close()


def test_no_pilot_is_foreseen_while_all_that_are_queued_are_held(tmp_path: Path) -> None:
    """By a person, an administrator or a submit plugin."""
    site = FakeSite(tmp_path / "state")
    core = site.state.core
    bag = core.broker.state.bags[site.submit_bag(5)]
    steps(site)
    for held in (False, True):
        for pilot in list(site.state.pilots.values()):
            wait = Wait("it is held (JobHeldUser)", Hold.ITS_OWN) if held else Wait()
            site.state.memory.change(pilot, wait=wait)
        facts = facts_of(core.broker.state, bag)
        assert known_bag(core.snapshot("here", core.now()), facts).sites[0].open is not held
    site.journal.close()


def test_our_pilots_for_other_bags_are_held_until_those_are_done(tmp_path: Path) -> None:
    """Those of a bag with a budget serve no other bag; narrow ones no wider task."""
    site = FakeSite(tmp_path / "state")
    core = site.state.core
    payer, narrow = site.submit_bag(5, budget=10**9), site.submit_bag(5)
    steps(site, 2)
    wide = site.submit_bag(5, cpus=8)
    made = core.decided.forecasts
    of_payer = {each.job for each in site.state.pilots.values() if each.bag == payer}
    shared = {each.job for each in site.state.pilots.values() if each.bag is None}
    assert of_payer
    assert shared

    def beside(bag: int) -> dict[str, Estimate]:
        facts = facts_of(core.broker.state, core.broker.state.bags[bag])
        return dict(known_bag(core.snapshot("here", core.now()), facts).sites[0].beside)

    paid, free = (
        dict.fromkeys(jobs, made[bag].forecast.end) for jobs, bag in ((of_payer, payer), (shared, narrow))
    )
    assert beside(narrow) == paid
    assert beside(wide) == {**paid, **free}, "its own end does not count"
    assert beside(payer) == {}, "the end of the wide one is not known yet"
    core.broker.cancel(wide)
    assert beside(payer) == free
    core.broker.cancel(narrow)
    assert [end.high for end in beside(payer).values()] == [pytest.approx(core.now(), abs=5)]
    site.journal.close()
