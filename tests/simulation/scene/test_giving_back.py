"""A quoted bag whose dear site is six times slower than quoted gives it back by a new plan (BaTS)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest

from adaptor.config.schema import Duration, SiteConfig
from adaptor.decisions.actions import End, GiveBack, SubmitRequest
from tests.simulation.scene.scenes import Played, Scene, SceneBag, simulate, spec
from tests.simulation.scene.test_same_scene import assert_same

TASKS, SLOWER, LONGEST = 300, 6, 23
DEADLINE = 1300.0


@pytest.fixture(autouse=True)
def unforeseen() -> Iterator[None]:
    """Forecasts take most of the time, and decide nothing here."""
    with patch("adaptor.decisions.decide.make_forecasts", lambda *_: []):
        yield


def quoted(unit: int, budget: int) -> Scene:
    """Slots 4 + 4 in pilots of 2 each; a processor of `far` costs three times as much."""
    near = SiteConfig(
        backend="local",
        heuristic="adaptive",
        initial_tr=Duration(60),
        pad=Duration(5),
        charging_unit=Duration(unit),
    )
    far = msgspec.structs.replace(near, price=msgspec.structs.replace(near.price, explicit=3.0))
    slots, runtimes = {"near": 4, "far": 4}, {"near": 20.0, "far": 20.0}
    return Scene(
        sites={"near": (near, 8, []), "far": (far, 8, [])},
        bags=(
            SceneBag(
                spec=spec(slots=slots, runtimes=runtimes, deadline=DEADLINE),
                tasks=TASKS,
                seconds=LONGEST - 6,
                budget=budget,
                slower={"far": SLOWER},
            ),
        ),
        until=2000,
        pending=4,
        widest=2,
    )


def done(played: Played) -> int:
    return sum(state == "done" for _, _, state, _ in played.ends)


def given_back(played: Played) -> list[float]:
    """When; all of them at the dear site."""
    found = [each for each in played.decided if isinstance(each.action, GiveBack | End)]
    assert all(each.site == "far" for each in found)
    return [each.at for each in found]


@pytest.mark.parametrize(("unit", "budget"), [(1, 2_500_000), (60, 3_000_000), (180, 3_500_000)])
def test_budget_and_deadline_hold_as_the_dear_site_is_given_back(
    unit: int, budget: int, tmp_path: Path
) -> None:
    played = assert_same(quoted(unit, budget), tmp_path / "state")
    assert done(played) == TASKS
    assert max(at for *_, at in played.ends) <= DEADLINE
    assert played.charged[1] <= budget
    asked = [each for each in played.decided if isinstance(each.action, SubmitRequest)]
    assert not [each for each in asked if each.at > max(given_back(played)) and each.site == "far"]


@pytest.mark.parametrize(("unit", "budget"), [(1, 2_500_000), (60, 3_000_000)])
def test_without_it_the_budget_is_used_up_by_half_of_the_tasks(unit: int, budget: int) -> None:
    with patch("adaptor.decisions.decide.give_back_surplus", lambda *_: []):
        played = simulate(quoted(unit, budget))
    assert done(played) <= 0.6 * TASKS
