"""Faults come when the bag is as far as the plan says, are mended, and are counted as survived or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from lab.campaign import playing
from lab.campaign.faults.catalog import CATALOG, EVERYWHERE, Fault, NoVictimError
from lab.campaign.plan import KindOfFault, Plan, PlannedFault, PlannedTask
from lab.campaign.playing import Play, Played
from lab.campaign.world import World

TASKS = 10


class Effects:
    """Of a fake world."""

    def __init__(self, world: FakeWorld) -> None:
        self._world = world

    def bag(self, tasks: Any) -> list[str]:
        return []

    def through(self) -> int:
        return self._world.through


class FakeWorld:
    """A bag of which one task ends at every look, as long as it is not broken for good."""

    def __init__(self) -> None:
        self.through = 0
        self.broken = False
        self.log: list[str] = []
        self.chores: list[Any] = []
        self.daemon_runs = False
        self.lab = self
        self.effects = Effects(self)
        self.root = Path("/nowhere")

    def tend(self) -> None:
        if not self.broken:
            self.through = min(TASKS, self.through + 1)

    def bag(self, tasks: Any) -> list[str]:
        return []

    def submit(self, *arguments: Any) -> int:
        return 1

    def status(self) -> dict[str, str]:
        return {"state": "done" if self.through == TASKS else "running"}


@contextmanager
def harmless(world: World, draw: float) -> Iterator[str]:
    cast(FakeWorld, world).log.append(f"hit at {cast(FakeWorld, world).through}")
    yield "it"
    cast(FakeWorld, world).log.append("mended")


@contextmanager
def deadly(world: World, draw: float) -> Iterator[str]:
    cast(FakeWorld, world).broken = True
    yield "all"


@contextmanager
def without_victim(world: World, draw: float) -> Iterator[str]:
    raise NoVictimError
    yield


def play(monkeypatch: pytest.MonkeyPatch, world: FakeWorld, *faults: tuple[float, str]) -> Played:
    for name, act in {"harmless": harmless, "deadly": deadly, "none": without_victim}.items():
        kind = KindOfFault(name, 1, 0, 0)
        monkeypatch.setitem(CATALOG, name, Fault(kind, EVERYWHERE, act))
    for name, value in {"PAUSE": 0.001, "BETWEEN": 0.0, "STUCK": 0.2}.items():
        monkeypatch.setattr(playing, name, value)
    planned = tuple(PlannedFault(at, kind, 0.0, 0.5) for at, kind in faults)
    plan = Plan(1, "plain", (PlannedTask(1),) * TASKS, planned)
    return Play(plan, cast(World, world), lambda _: None, ()).run()


def test_faults_come_in_the_order_of_the_work_and_are_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    world = FakeWorld()
    played = play(monkeypatch, world, (0.2, "harmless"), (0.6, "harmless"))
    assert world.log == ["hit at 2", "mended", "hit at 6", "mended"]
    assert played.injected == played.survived == {"harmless": 2}
    assert not played.left_out
    assert not played.stuck


def test_a_fault_without_a_victim_waits_and_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    played = play(monkeypatch, FakeWorld(), (0.2, "none"), (0.5, "harmless"))
    assert played.injected == {"harmless": 1}
    assert played.left_out == ["none"]


def test_a_bag_that_does_not_go_on_after_a_fault_has_not_survived_it(monkeypatch: pytest.MonkeyPatch) -> None:
    played = play(monkeypatch, FakeWorld(), (0.2, "harmless"), (0.5, "deadly"), (0.9, "harmless"))
    assert played.stuck
    assert played.injected == {"harmless": 1, "deadly": 1}
    assert played.survived == {"harmless": 1}
