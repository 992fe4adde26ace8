"""How often forecasts are made, and which is the first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.budget.accounting.ledger import Ledger
from adaptor.forecast.estimate import Estimate
from adaptor.budget.estimation.forecast import Forecast
from adaptor.daemon.client.credits import forecast_view
from adaptor.decisions import forecasts
from adaptor.decisions.forecasts import INTERVAL, OLD, SPACING, forecast_of
from adaptor.decisions.memory import Memory
from adaptor.journal.bag_views import bags
from adaptor.scheduling.facts import BagFacts
from tests.daemon.budgeted_site import set_budget, steps
from tests.daemon.fake_site import FakeSite
from tests.decisions.hosts.test_aims import SPEC, asked, finish, submit


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FakeSite]:
    site = FakeSite(tmp_path / "state")
    yield site
    site.journal.close()


class Maker:
    """Makes forecasts that can be told apart, and keeps what is remembered of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        self.memory = Memory()
        self.knows = True
        monkeypatch.setattr(forecasts, "look_ahead", self._make)

    def of(self, bag: int, now: float) -> Forecast | None:
        facts = BagFacts(
            id=bag, spec=SPEC, tasks=1, waiting=1, finished=0, total=0.0, squares=0.0,
            starts=(), attempts={}, by_pilot={}, learned={}, runtimes=(), every=1,
        )  # fmt: skip
        found, self.memory = forecast_of(self.memory, facts, {}, Ledger(), now)
        return found

    def _make(self, *_: object) -> Forecast | None:
        if not self.knows:
            return None
        self.made += 1
        number = Estimate(self.made, self.made, self.made)
        return Forecast(number, None, number)


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Maker:
    return Maker(monkeypatch)


def test_a_forecast_is_made_anew_after_some_seconds(maker: Maker) -> None:
    first = maker.of(1, 100.0)
    assert maker.of(1, 100.0 + INTERVAL - 1) is first
    assert maker.of(1, 100.0 + INTERVAL) is not first
    assert maker.made == 2
    maker.of(1, 50.0)
    assert maker.made == 3, "the clock was set back"


def test_those_of_many_bags_are_made_in_turn_but_for_the_first(maker: Maker) -> None:
    for bag in range(50):
        assert maker.of(bag, 100.0) is not None
    assert maker.made == 50
    for _ in range(2):
        for bag in range(50):
            maker.of(bag, 100.0 + INTERVAL)
    assert maker.made == 51
    maker.of(7, 100.0 + INTERVAL + SPACING)
    assert maker.made == 52


def test_that_too_little_is_known_is_not_remembered(maker: Maker) -> None:
    maker.knows = False
    assert maker.of(1, 100.0) is None
    maker.knows = True
    assert maker.of(1, 100.1) is not None


def test_an_old_one_is_no_longer_told(maker: Maker) -> None:
    maker.of(1, 100.0)
    maker.of(2, 100.0 + OLD)
    maker.of(1, 100.0 + OLD)
    assert maker.made == 3


def test_steps_share_a_forecast(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    look_ahead = forecasts.look_ahead

    def counted(*given: object) -> Forecast | None:
        made.append(1)
        return look_ahead(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(forecasts, "look_ahead", counted)
    bag = submit(site, 40, deadline=1e12)
    finish(site, bag, 20, 60.0)
    set_budget(site, bag.id, 10.0)
    steps(site, 4)
    assert sum(made) == 1


def kept(site: FakeSite) -> dict[int, tuple[float, int, int]]:
    rows = site.journal.connection.execute("SELECT bag, made, finished, tasks FROM forecast")
    return {bag: (made, finished, tasks) for bag, made, finished, tasks in rows}


def test_the_first_forecast_is_kept_without_a_question_and_once(site: FakeSite) -> None:
    bag = submit(site, 40, prefer="cheap")
    steps(site)
    assert kept(site) == {}, "too little is known"
    finish(site, bag, 10, 60.0)
    steps(site, 2)
    ((made, finished, tasks),) = kept(site).values()
    assert (finished, tasks) == (10, 40)
    finish(site, bag, 25, 1.0, first=10)
    steps(site, 2)
    assert kept(site) == {bag.id: (made, 10, 40)}


def test_without_a_pilot_there_is_no_end_to_forecast_and_the_first_one_comes_later(site: FakeSite) -> None:
    bag = submit(site, 40, prefer="cheap")
    finish(site, bag, 10, 60.0)
    steps(site)
    assert kept(site) == {}
    assert asked(site) > 0
    steps(site)
    assert list(kept(site)) == [bag.id]


def test_what_is_kept_is_what_is_shown(site: FakeSite) -> None:
    bag = submit(site, 40, prefer="cheap")
    steps(site)
    finish(site, bag, 10, 60.0)
    core = site.state.core
    (view,) = bags(site.journal.connection, str(bag.id))
    shown = forecast_view(core, view)
    assert shown is not None
    steps(site)
    rows = site.journal.connection.execute("SELECT cost_low, cost_value, end_high FROM forecast")
    assert rows.fetchone() == (shown.cost_low, shown.cost, shown.end_high)


def test_bags_that_share_their_pilots_have_an_end_from_the_first_look_at_the_queue_and_no_cost(
    site: FakeSite,
) -> None:
    bag = submit(site, 40)
    (view,) = bags(site.journal.connection, str(bag.id))
    assert forecast_view(site.state.core, view) is None, "nobody knows the queue"
    steps(site)
    ((made, finished, tasks),) = kept(site).values()
    assert (finished, tasks) == (0, 40)
    shown = forecast_view(site.state.core, view)
    assert shown is not None
    assert shown.cost is None
    assert shown.end_low is not None
    assert shown.end is not None
    assert shown.end_high is not None
    assert made <= shown.end_low <= shown.end <= shown.end_high
    row = site.journal.connection.execute("SELECT cost_low, end_value FROM forecast").fetchone()
    assert row == (None, shown.end)
    finish(site, bag, 20, 60.0)
    steps(site, 2)
    assert kept(site) == {bag.id: (made, 0, 40)}, "the first one is judged"
