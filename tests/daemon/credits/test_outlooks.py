"""How often forecasts are made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.budget.estimation.forecast import Estimate, Forecast
from adaptor.daemon.credits import aiming, foresight
from adaptor.daemon.credits.outlooks import INTERVAL, OLD, SPACING, Outlooks
from tests.daemon.budgeted_site import set_budget, steps
from tests.daemon.credits.test_aiming import finish, submit
from tests.daemon.fake_site import FakeSite


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FakeSite]:
    site = FakeSite(tmp_path / "state")
    yield site
    site.journal.close()


class Maker:
    """Makes forecasts that can be told apart."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> Forecast:
        self.made += 1
        number = Estimate(self.made, self.made, self.made)
        return Forecast(number, None, number)


def test_a_forecast_is_made_anew_after_some_seconds() -> None:
    outlooks, maker = Outlooks(), Maker()
    first = outlooks.of(1, 100.0, maker)
    assert outlooks.of(1, 100.0 + INTERVAL - 1, maker) is first
    assert outlooks.of(1, 100.0 + INTERVAL, maker) is not first
    assert maker.made == 2
    outlooks.of(1, 50.0, maker)
    assert maker.made == 3, "the clock was set back"


def test_those_of_many_bags_are_made_in_turn_but_for_the_first() -> None:
    outlooks, maker = Outlooks(), Maker()
    for bag in range(50):
        assert outlooks.of(bag, 100.0, maker) is not None
    assert maker.made == 50
    for _ in range(2):
        for bag in range(50):
            outlooks.of(bag, 100.0 + INTERVAL, maker)
    assert maker.made == 51
    outlooks.of(7, 100.0 + INTERVAL + SPACING, maker)
    assert maker.made == 52


def test_that_too_little_is_known_is_not_remembered() -> None:
    outlooks, maker = Outlooks(), Maker()
    assert outlooks.of(1, 100.0, lambda: None) is None
    assert outlooks.of(1, 100.1, maker) is not None


def test_an_old_one_is_no_longer_told() -> None:
    outlooks, maker = Outlooks(), Maker()
    outlooks.of(1, 100.0, maker)
    outlooks.of(2, 100.0 + OLD, maker)
    outlooks.of(1, 100.0 + OLD, maker)
    assert maker.made == 3


def test_steps_share_a_forecast(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(*given: object) -> Forecast:
        made.append(1)
        return foresight.look_ahead(*given)  # type: ignore[arg-type,return-value]

    monkeypatch.setattr(aiming, "look_ahead", counted)
    bag = submit(site, 40, deadline=1e12)
    finish(site, bag, 20, 60.0)
    set_budget(site, bag.id, 10.0)
    steps(site, 4)
    assert sum(made) == 1
