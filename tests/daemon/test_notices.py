"""Who waits for a bag hears of it, and those who find no room do not wait for long."""

from __future__ import annotations

import asyncio

import pytest

from adaptor.daemon import notices as module
from adaptor.daemon.notices import Listeners
from tests.living import PATIENCE


async def test_only_later_events_of_the_bags_that_are_meant_wake() -> None:
    listeners = Listeners()
    waiting = asyncio.create_task(listeners.wait({1: 5, 2: 7}, 60))
    other = asyncio.create_task(listeners.wait({3: 0}, 60))
    await asyncio.sleep(0)
    assert len(listeners) == 2
    listeners.tell({1: 5, 2: 6, 4: 9})
    await asyncio.sleep(0)
    assert not waiting.done()
    listeners.tell({2: 8})
    assert await waiting
    assert not other.done()
    listeners.tell_all()
    assert await other
    assert len(listeners) == 0


async def test_a_listener_that_leaves_is_forgotten() -> None:
    listeners = Listeners()
    waiting = asyncio.create_task(listeners.wait({1: 5}, 60))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert len(listeners) == 0
    listeners.tell({1: 6})


def test_without_room_nobody_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WITHOUT_ROOM", 0.01)

    async def scene() -> None:
        listeners = Listeners()
        listeners.room = 1
        first = asyncio.create_task(listeners.wait({1: 0}, 60))
        await asyncio.sleep(0)
        assert not await listeners.wait({1: 0}, 60)
        listeners.tell({1: 1})
        assert await first

    asyncio.run(asyncio.wait_for(scene(), PATIENCE))
