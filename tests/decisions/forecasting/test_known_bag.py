"""What a forecast begins with: what is known of tasks, by user or history, and until when pilots run."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from adaptor.crafting.situation import EarlierTasks
from adaptor.decisions.forecasting.known_bag import known_bag
from adaptor.decisions.snapshot import BagAhead
from adaptor.scheduling.facts import facts_of
from tests.daemon.fake_site import FakeSite

EARLIER = EarlierTasks(kind="fit.py", tasks=12, mean=300.0, factor=3.0, low=200.0, high=400.0)


@pytest.mark.parametrize(
    ("earlier", "time", "guess", "surety"),
    [
        ({}, None, 15.0, 1.5),
        ({"here": EARLIER}, None, 300.0, math.log(3.0)),
        ({"elsewhere": EARLIER}, None, 15.0, 1.5),
        ({"here": EARLIER}, 100.0, 100.0, 0.5),
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
    known = known_bag(snapshot, BagAhead(facts_of(core.broker.state, bag), alone=False))
    assert (known.runtimes.guess, known.runtimes.surety) == (pytest.approx(guess), pytest.approx(surety))
    assert known.sites[0].rule == core.broker.state.learner(bag.id, "here").rule
    assert known.sites[0].rule.factor == core.terms["here"].growth_factor
    assert known.sites[0].heuristic == snapshot.sites["here"].heuristic
    site.journal.close()
