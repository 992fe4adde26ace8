"""The same scene by the simulation and by the daemon: the same actions in the same order."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from adaptor.decisions.actions import KeepForecast, SubmitRequest
from tests.simulation.scene.scenes import Played, Scene, SceneBag, run_daemon, simulate, spec, two_sites


def assert_same(scene: Scene, directory: Path) -> Played:
    simulated = simulate(scene)
    daemon = run_daemon(scene, directory)
    for number, (mine, its) in enumerate(zip(simulated.decided, daemon.decided, strict=False)):
        assert mine == its, f"decision {number}"
    assert len(simulated.decided) == len(daemon.decided)
    assert simulated.ends == daemon.ends
    assert simulated.charged == daemon.charged
    return simulated


def test_two_sites_a_budget_a_deadline_and_donated_nodes(tmp_path: Path) -> None:
    played = assert_same(two_sites(), tmp_path / "state")
    submits = [each for each in played.decided if isinstance(each.action, SubmitRequest)]
    assert {each.site for each in submits} == {"near", "far"}
    assert any(each.action.node for each in submits), "donated nodes are used"
    assert any("credits are left" in each.action.crafted.reason for each in submits), "a budget cuts"
    assert any("deadline" in each.action.crafted.reason for each in submits)
    kept = [each.action.bag for each in played.decided if isinstance(each.action, KeepForecast)]
    assert sorted(kept) == [1, 2], "of each bag that has pilots of its own one forecast is judged"
    assert sum(state == "done" for _, _, state, _ in played.ends) > 120


def random_scene(seed: int) -> Scene:
    """The sites of `two_sites` with other local users and other bags."""
    draw = random.Random(seed)
    base = two_sites()
    sites = {}
    for name, (config, processors, _) in base.sites.items():
        jobs, at = [], 0
        for _ in range(draw.randrange(1, 6)):
            limit = draw.randrange(60, 1200, 30)
            jobs.append((at, draw.randrange(1, processors + 1), limit, draw.randrange(30, limit + 1)))
            at += draw.randrange(0, 900)
        sites[name] = (config, processors, jobs)
    wishes = [
        {},
        {"prefer": draw.choice(["cheap", "balanced", "fast"])},
        {"deadline": float(draw.randrange(300, 3000))},
        {"allocation": draw.choice(["transparent", "explicit"])},
        {"slots": {"near": 1, "far": 2}, "runtimes": {"near": 20.0, "far": 20.0}, "deadline": 900.0},
    ]
    bags = tuple(
        SceneBag(
            spec=spec(**draw.choice(wishes)),
            tasks=draw.randrange(4, 40),
            seconds=draw.randrange(5, 120),
            budget=draw.choice([None, None, 500_000, 5_000_000]),
        )
        for _ in range(draw.randrange(1, 4))
    )
    return msgspec.structs.replace(base, sites=sites, bags=bags, until=1500)


@pytest.mark.parametrize("seed", range(3))
def test_any_scene(seed: int, tmp_path: Path) -> None:
    played = assert_same(random_scene(seed), tmp_path / "state")
    assert any(isinstance(each.action, SubmitRequest) for each in played.decided)
