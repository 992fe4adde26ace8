"""A planner that withdraws all the time: limits hold at every instant, nothing is lost or done twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from adaptor.config.schema import SiteConfig
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Withdraw
from adaptor.units import Duration, HourlyRate
from adaptor_simulation.scene.site import SimulatedSite
from tests.crafting.restless import restless
from tests.simulation.scene.scenes import Played, Scene, SceneBag, simulate, spec
from tests.simulation.scene.test_same_scene import assert_same

PENDING = 2
"""Of the scenes' limits."""


@pytest.fixture(params=["adaptive", "completion"])
def heuristic(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def planner() -> Iterator[None]:
    with patch("adaptor.decisions.decide.plan", restless):
        yield


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    """The scheduler itself holds us to the limits with each submission."""
    submit = SimulatedSite.submit

    def counted(self: SimulatedSite, *arguments: Any) -> str:
        id = submit(self, *arguments)
        live = [job for job in self._jobs.values() if job.ended is None and not job.node]
        limits = self.place.settings.rules.limits
        assert len(live) <= limits.max_pending_requests == PENDING
        assert all(job.request.p <= limits.max_proc and job.request.tr <= limits.max_tr for job in live)
        return id

    with patch.object(SimulatedSite, "submit", counted):
        yield


def busy(seed: int, **keys: Any) -> Scene:
    """A site where requests wait, and a bag of tasks that take a minute or so."""
    draw = random.Random(seed)
    config = SiteConfig(backend="local", initial_tr=Duration(60), pad=Duration(10))
    jobs, at = [(0, 8, 600, 400)], 0
    for _ in range(4):
        at += draw.randrange(60, 600)
        limit = draw.randrange(300, 1200, 30)
        jobs.append((at, draw.randrange(4, 9), limit, draw.randrange(120, limit + 1)))
    return Scene(
        sites={"here": (msgspec.structs.replace(config, **keys), 8, jobs)},
        bags=(SceneBag(spec=spec(), tasks=30, seconds=draw.randrange(20, 90)),),
        until=40_000,
    )


def withdrawals(played: Played) -> list[int]:
    return [
        each.action.pilot
        for each in played.decided
        if isinstance(each.action, Withdraw) and each.action.recraft
    ]


def check(played: Played, tasks: int) -> None:
    assert all(state == "done" for _, _, state, _ in played.ends)
    assert Counter(task for _, task, _, _ in played.ends) == Counter(range(tasks)), "each once"


@pytest.mark.parametrize("seed", range(6))
def test_every_task_is_done_once_however_often_requests_are_withdrawn(seed: int, heuristic: str) -> None:
    played = simulate(busy(seed, heuristic=heuristic))
    assert withdrawals(played)
    check(played, 30)


def test_the_daemon_withdraws_as_the_simulation_does(tmp_path: Path, heuristic: str) -> None:
    played = assert_same(busy(1, heuristic=heuristic), tmp_path / "state")
    assert withdrawals(played)
    check(played, 30)


def test_withdrawn_requests_use_up_no_submissions_of_an_hour(heuristic: str) -> None:
    played = simulate(busy(2, heuristic=heuristic, max_submissions=HourlyRate(5)))
    assert len(withdrawals(played)) > 5
    kept = played.kept_submissions()
    assert all(sum(first <= at < first + 3600 for at in kept) <= 5 for first in kept)
    check(played, 30)


def test_the_withdrawals_of_an_hour_are_used_up_and_go_on(heuristic: str, tmp_path: Path) -> None:
    played = assert_same(busy(2, heuristic=heuristic, max_withdrawals=HourlyRate(5)), tmp_path / "state")
    queued = set(withdrawals(played))
    taken = [
        each.at
        for each in played.decided
        if isinstance(each.action, Withdraw) and each.action.pilot in queued
    ]
    assert 0 < len(taken) < len(withdrawals(simulate(busy(2, heuristic=heuristic))))
    assert all(sum(first <= at < first + 3600 for at in taken) <= 5 for first in taken)
    check(played, 30)


def test_a_site_that_forbids_it_sees_no_request_withdrawn_for_a_better_one(heuristic: str) -> None:
    played = simulate(busy(2, heuristic=heuristic, withdraw=False))
    assert withdrawals(played) == []
    check(played, 30)


@pytest.mark.parametrize("seed", range(3))
def test_completion_by_itself_is_decided_alike(seed: int, tmp_path: Path) -> None:
    with patch("adaptor.decisions.decide.plan", plan):
        played = assert_same(busy(seed, heuristic="completion"), tmp_path / "state")
    check(played, 30)
