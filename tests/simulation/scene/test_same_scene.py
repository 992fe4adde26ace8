"""The same scene by the simulation and by the daemon: the same actions in the same order."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from adaptor.crafting.situation import SubmitRequest, Withhold
from adaptor.decisions.actions import KeepForecast
from adaptor.units import HourlyRate
from tests.simulation.scene.scenes import (
    Played,
    Scene,
    SceneBag,
    of_two_partitions,
    on_nodes,
    run_daemon,
    simulate,
    spec,
    two_sites,
)


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
    assert any("paid for at first" in each.action.crafted.reason for each in submits), "a budget pays"
    assert any("deadline" in each.action.crafted.reason for each in submits)
    forecasts = [each.action for each in played.decided if isinstance(each.action, KeepForecast)]
    kept = [action.bag for action in forecasts if action.first is not None]
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
        {"time": 20.0, "deadline": 900.0},
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


@pytest.mark.nightly  # each plays its scene twice
@pytest.mark.parametrize("seed", range(3))
def test_any_scene(seed: int, tmp_path: Path) -> None:
    played = assert_same(random_scene(seed), tmp_path / "state")
    assert any(isinstance(each.action, SubmitRequest) for each in played.decided)


def test_the_submissions_of_an_hour_are_counted_alike(tmp_path: Path) -> None:
    """One an hour, which those that are withdrawn before they start do not use up."""
    base = two_sites()
    config, processors, jobs = base.sites["far"]
    capped = msgspec.structs.replace(config, heuristic="adaptive", max_submissions=HourlyRate(1))
    scene = msgspec.structs.replace(
        base,
        sites={"far": (capped, processors, jobs)},
        bags=(SceneBag(spec=spec(), tasks=60, seconds=400),),
        until=7400,
    )
    played = assert_same(scene, tmp_path / "state")
    kept = played.kept_submissions()
    assert all(sum(first <= at < first + 3600 for at in kept) <= 1 for first in kept)
    assert len(kept) == 2
    told = {each.action.reason for each in played.decided if isinstance(each.action, Withhold)}
    assert any("max_submissions is 1 an hour and used up" in reason for reason in told)


def test_sites_of_nodes_are_decided_alike(tmp_path: Path) -> None:
    """Of the 11 processors of `far` 5 are idle: 4 on one node, which is the place of one task of 3."""
    played = assert_same(on_nodes(), tmp_path / "state")
    assert len(played.ends) == 50
    assert all(state == "done" for _, _, state, _ in played.ends)
    asked = [
        (each.site, each.action.demand.task.processors, each.action.crafted.request.p, each.action.crafted)
        for each in played.decided
        if isinstance(each.action, SubmitRequest)
    ]
    assert all(p % cpus == 0 for _, cpus, p, _ in asked)
    starts = [(*row[:3], row[3].predicted_start) for row in asked]
    assert starts[0] == ("far", 3, 3, 0.0)
    assert ("near", 1, 4, 1.0) in starts


def test_partitions_of_a_site_are_decided_alike(tmp_path: Path) -> None:
    """The short tasks begin in `quick`, of which all is idle; those of 700 s can only end in `slow`."""
    played = assert_same(of_two_partitions(), tmp_path / "state")
    assert len(played.ends) == 48
    assert all(state == "done" for _, _, state, _ in played.ends)
    asked = [each.action for each in played.decided if isinstance(each.action, SubmitRequest)]
    assert (asked[0].crafted.partition, asked[0].crafted.request.p) == ("quick", 8)
    assert {each.crafted.partition for each in asked} == {"quick", "slow"}
    assert all(each.crafted.request.tr <= 600 for each in asked if each.crafted.partition == "quick")
    long = [each.crafted for each in asked if each.crafted.request.tr > 600]
    assert long
    assert {each.partition for each in long} == {"slow"}
    withheld = [each.action.reason for each in played.decided if isinstance(each.action, Withhold)]
    assert all(withheld), "each says why"


def test_a_site_of_partitions_beside_another_site_is_decided_alike(tmp_path: Path) -> None:
    base = of_two_partitions()
    (plain, _, _), short = base.sites["here"], base.bags[0]
    bags = (
        short,
        SceneBag(spec=spec(deadline=900.0), tasks=12, seconds=30),
        SceneBag(spec=spec(), tasks=12, seconds=30, budget=2_000_000),
    )
    scene = msgspec.structs.replace(
        base, sites={**base.sites, "far": (plain, 8, [(0, 8, 300, 200)])}, bags=bags, until=700
    )
    played = assert_same(scene, tmp_path / "state")
    asked = {
        (each.site, each.action.crafted.partition)
        for each in played.decided
        if isinstance(each.action, SubmitRequest)
    }
    assert {site for site, _ in asked} == {"here", "far"}
    assert {partition for site, partition in asked if site == "here"} <= {"quick", "slow"}
    assert all(state == "done" for _, _, state, _ in played.ends)
