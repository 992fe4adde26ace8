"""A bag on slots that were chosen from a quote, whose tasks turn out to take longer."""

from __future__ import annotations

import importlib.util
import time

import pytest

from adaptor.decisions.memory import Memory
from adaptor.decisions.replanning import INTERVAL, is_due
from adaptor.model import CraftedRequest, PilotState, Request
from adaptor.scheduling.bag import Bag
from tests.daemon.budgeted_site import set_budget, steps
from tests.daemon.fake_site import FakeSite
from tests.decisions.test_aims import asked, finish, submit


def quoted(site: FakeSite, seconds: float, credits: float) -> Bag:
    """Tasks of a minute, where 20 s were sampled; 20 of 60 are done."""
    bag = submit(site, 60, slots={"here": 1}, runtimes={"here": 20.0}, deadline=time.time() + seconds)
    finish(site, bag, 20, 60.0)
    crafted = CraftedRequest(Request(1, 3600), None, 20, "because")
    pilot = site.journal.add_pilots("here", "tag.", [crafted], 0.0, bag.id)[0]
    site.journal.update_pilot(
        pilot, state=PilotState.COMPLETED, job="1", started=0.0, ended=3600.0, end_reason=""
    )
    site.journal.connection.execute("UPDATE attempt SET pilot = ?", (pilot,))
    site.restart()
    set_budget(site, bag.id, credits)
    return bag


def test_it_asks_for_more_slots_where_those_chosen_are_too_slow(site: FakeSite) -> None:
    quoted(site, 1200, 10.0)
    steps(site, 3)
    assert asked(site) == 4, "all that the site has for it"
    (told,) = site.told("divided")
    assert told.startswith("planned again: the chosen slots would take")
    assert "4 at here" in told


def test_a_restart_finds_the_same(site: FakeSite) -> None:
    quoted(site, 1200, 10.0)
    site.restart()
    steps(site, 3)
    assert asked(site) == 4


def test_it_keeps_to_the_chosen_slots_where_they_will_do(site: FakeSite) -> None:
    quoted(site, 6000, 10.0)
    steps(site, 3)
    assert asked(site) == 1
    assert site.told("divided") == []


def test_it_keeps_to_them_where_the_money_allows_no_others(site: FakeSite) -> None:
    quoted(site, 600, 0.3)
    steps(site, 3)
    assert asked(site) <= 1


def test_too_little_is_known_for_other_slots(site: FakeSite) -> None:
    bag = submit(site, 60, slots={"here": 1}, runtimes={"here": 20.0}, deadline=time.time() + 100)
    finish(site, bag, 3, 60.0)
    set_budget(site, bag.id, 10.0)
    steps(site, 3)
    assert asked(site) == 1


def test_looks_are_some_seconds_apart() -> None:
    assert is_due(Memory(), 1, 100.0)
    memory = Memory(looked={1: 100.0})
    assert not is_due(memory, 1, 100.0 + INTERVAL - 1)
    assert is_due(memory, 2, 101.0)
    assert is_due(memory, 1, 100.0 + INTERVAL)
    assert is_due(memory, 1, 50.0), "the clock was set back"


def test_without_numpy_it_keeps_to_the_chosen_slots(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    quoted(site, 1200, 10.0)
    steps(site, 3)
    assert asked(site) == 1
