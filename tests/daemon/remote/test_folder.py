"""A remote site's folder and access file, while machine and route fail and recover."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from adaptor.daemon.remote import folder as module
from adaptor.daemon.remote.folder import RemoteFolder
from adaptor.protocol.access import Access, Credentials, read_access
from backends.base import SchedulerError
from backends.machines.here import Here
from tests.living import PATIENCE


class FakeRoute:
    """Stands until it is told to fall."""

    caveat = "is it open?"

    def __init__(self) -> None:
        self.opened = 0
        self.failures: list[SchedulerError] = []
        self.alive = False
        self.beats = 0
        self.gone = False

    async def open(self, folder: Path) -> tuple[str, ...]:
        if self.failures:
            raise self.failures.pop(0)
        assert folder.is_dir()
        self.opened += 1
        self.alive = True
        return (f"tcp://login:{self.opened}",)

    def keep_alive(self) -> None:
        self.beats += 1
        if self.gone:
            raise BrokenPipeError

    async def close(self) -> None:
        self.alive = False


class Scene:
    def __init__(self, folder: Path) -> None:
        self.route = FakeRoute()
        self.told: list[str] = []
        self.remote_folder = RemoteFolder(
            Here(),
            folder / "there",
            access=lambda addresses: Access(addresses=addresses, server="s", own=Credentials("p", "k")),
            route=self.route,
            changed=self.told.append,
        )

    @property
    def addresses(self) -> tuple[str, ...]:
        return read_access(self.remote_folder.access).addresses

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            await asyncio.sleep(0.01)

    def play(self, act: Callable[[], Awaitable[None]]) -> None:
        async def all_of_it() -> None:
            running = asyncio.create_task(self.remote_folder.run())
            await asyncio.wait_for(act(), PATIENCE)
            running.cancel()
            await self.remote_folder.close()

        asyncio.run(all_of_it())


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(module, "_LOOK", 0.01)
    monkeypatch.setattr(module, "_KEEP_ALIVE", 0.02)
    return Scene(tmp_path)


def test_until_it_is_reached_there_is_a_problem(scene: Scene) -> None:
    assert "has not been reached yet" in scene.remote_folder.problem

    async def act() -> None:
        await scene.until(lambda: not scene.remote_folder.problem)
        assert scene.addresses == ("tcp://login:1",)
        assert scene.remote_folder.caveat == "is it open?"
        assert scene.told == [""]

    scene.play(act)


def test_a_route_that_fails_is_tried_again_and_told_once(scene: Scene) -> None:
    scene.route.failures = [SchedulerError("ssh far: no route")]

    async def act() -> None:
        await scene.until(lambda: not scene.remote_folder.problem)
        assert scene.told == ["ssh far: no route", ""]

    scene.play(act)


@pytest.mark.parametrize("how", ["it is seen to fall", "nobody is there for a sign of life"])
def test_a_route_that_was_lost_is_made_again_with_new_addresses(scene: Scene, how: str) -> None:
    async def act() -> None:
        await scene.until(lambda: scene.route.beats > 2)
        if how == "it is seen to fall":
            scene.route.alive = False
        else:
            scene.route.gone = True
        await scene.until(lambda: scene.remote_folder.problem)
        scene.route.gone = False
        await scene.until(lambda: not scene.remote_folder.problem)
        assert scene.addresses[0] != "tcp://login:1"
        assert "were lost; reconnecting" in scene.told[1]

    scene.play(act)


def test_what_a_loss_has_taken_is_given_back_to_the_workers(scene: Scene) -> None:
    async def act() -> None:
        await scene.until(lambda: not scene.remote_folder.problem)
        scene.route.failures = [SchedulerError("no route")]
        scene.route.alive = False
        await scene.until(lambda: scene.remote_folder.problem)
        lost = scene.remote_folder.heard_until(0.0)
        assert scene.remote_folder.heard_until(lost + 100) == lost
        await scene.until(lambda: not scene.remote_folder.problem)
        stood = time.time()
        assert lost + 5 <= scene.remote_folder.heard_until(stood + 5) < stood + 5
        assert scene.remote_folder.heard_until(stood + 100) == stood + 100

    scene.play(act)


def test_a_folder_that_is_open_to_others_is_not_used(scene: Scene) -> None:
    scene.remote_folder.folder.mkdir(mode=0o755)

    async def act() -> None:
        await scene.until(lambda: scene.told)
        assert "is open to other users" in scene.told[0]
        assert scene.route.opened == 0

    scene.play(act)
