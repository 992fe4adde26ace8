"""Explicit and donated time of one site: which of them serves a bag is decided by cost and time left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from adaptor.config.schema import PriceConfig
from adaptor.donation.situation import NodeUse
from adaptor.scheduling.donation_facts import Preempted
from adaptor.units import Duration
from tests.daemon.donating_site import DonatingSite

SLOTS = 16
"""Of four idle nodes."""
MOST = 8
"""Processors of a formal request, and of what is idle."""
TASK = 60
"""Seconds that a task is expected to take there, at first."""


@pytest.fixture
def site(tmp_path: Path) -> DonatingSite:
    return DonatingSite(tmp_path / "state", price=PriceConfig(explicit=1.0, donated=0.25))


def formal(site: DonatingSite) -> int:
    """Processors in its formal requests."""
    return sum(order.request.p for order in site.backend.orders if not order.node)


def test_a_cheap_bag_is_left_to_donated_nodes_while_there_are_any(site: DonatingSite) -> None:
    site.submit(4 * SLOTS, "mixed", prefer="cheap")
    site.step()
    site.step()
    assert len(site.backend.donated) == 4
    assert formal(site) == 0
    assert "64 tasks at here (donated)" in site.told("withheld")[-1]
    for node in tuple(site.backend.donated):
        site.backend.set(node, NodeUse.TAKEN)
    site.step()
    assert formal(site) > 0, "none is left"


def test_a_deadline_has_formal_requests_do_what_donated_nodes_cannot(site: DonatingSite) -> None:
    site.submit(4 * SLOTS, "mixed", deadline=time.time() + 4 * TASK)
    site.step()
    assert len(site.backend.donated) == 4
    assert 0 < formal(site) <= MOST


def test_a_deadline_that_is_far_away_is_left_to_donated_nodes(site: DonatingSite) -> None:
    site.submit(4 * SLOTS, "mixed", deadline=time.time() + 100 * TASK)
    site.step()
    assert len(site.backend.donated) == 4
    assert formal(site) == 0


def test_a_bag_in_a_hurry_uses_both(site: DonatingSite) -> None:
    site.submit(8 * SLOTS, "mixed", budget=1_000_000_000)
    site.step()
    assert len(site.backend.donated) == 4
    assert formal(site) == MOST


def test_a_bag_without_aims_is_served_as_before(site: DonatingSite) -> None:
    site.submit(4 * SLOTS, "mixed")
    site.step()
    assert len(site.backend.donated) == 4
    assert formal(site) == MOST


def test_time_that_may_be_taken_back_is_not_bought_at_the_full_price(tmp_path: Path) -> None:
    """A task of 50 min is likely to be aborted once, so it costs more there than in a formal request."""
    price = PriceConfig(explicit=1.0, donated=0.9)
    site = DonatingSite(tmp_path / "state", price=price, initial_tr=Duration(3000))
    site.submit(4, "mixed", prefer="cheap")
    site.step()
    assert site.backend.donated == {}
    assert formal(site) > 0
    assert any("4 tasks at here (" in told for told in site.told("withheld"))


def test_without_a_lower_price_there_is_nothing_to_choose_by_cost(tmp_path: Path) -> None:
    site = DonatingSite(tmp_path / "state")
    site.submit(4 * SLOTS, "mixed", prefer="cheap")
    site.step()
    assert len(site.backend.donated) == 4
    assert formal(site) > 0


@pytest.mark.parametrize("allocation", ["explicit", "transparent"])
def test_who_has_chosen_is_not_asked(site: DonatingSite, allocation: str) -> None:
    site.submit(4 * SLOTS, allocation, prefer="cheap")
    site.step()
    assert bool(site.backend.donated) is (allocation == "transparent")
    assert bool(formal(site)) is (allocation == "explicit")


@pytest.mark.parametrize("aim", [{"prefer": "cheap"}, {"deadline": 1000 * TASK}])
def test_tasks_that_were_preempted_too_often_get_the_request_that_they_wait_for(
    site: DonatingSite, aim: dict[str, object]
) -> None:
    """Nothing starts them on donated nodes, however many are idle and cheap."""
    aim = {name: time.time() + value if name == "deadline" else value for name, value in aim.items()}
    number = site.submit(4, "mixed", **aim)
    preempted = site.state.core.broker.state.bags[number].preempted
    preempted.update({task: Preempted(times=3, ran=5.0) for task in range(3)})
    site.step()
    assert len(site.backend.donated) == 1
    assert formal(site) == 0, "one task may run there, and has its turn first"
    preempted[3] = Preempted(times=3, ran=5.0)
    site.step()
    assert formal(site) > 0
