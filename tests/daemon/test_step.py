"""How often a site is looked at that is woken all the time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from adaptor.daemon import step

LOOKS = step.BURST + 10


def pauses_of(monkeypatch: pytest.MonkeyPatch, backend: str) -> list[float]:
    """Seconds slept after each look of a site that is woken during each, on a clock that stands still."""
    pauses = list[float]()

    async def look(site: Any) -> None:
        site.wake.set()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == LOOKS:
            raise asyncio.CancelledError

    async def scene() -> None:
        config, memory = (
            SimpleNamespace(backend=backend),
            SimpleNamespace(settings=SimpleNamespace(poll=15.0)),
        )
        site: Any = SimpleNamespace(config=config, memory=memory, wake=asyncio.Event())
        site.wake.set()
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 1000.0)
        await step.run(site, lambda: True)

    monkeypatch.setattr(step, "step", look)
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "sleep", sleep)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(scene())
    return pauses


def test_beyond_a_burst_a_scheduler_is_asked_twice_in_a_poll_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses = pauses_of(monkeypatch, "slurm")
    assert pauses[: step.BURST] == [1.0] * step.BURST
    assert pauses[step.BURST :] == [7.5 * late for late in range(1, LOOKS - step.BURST + 1)]


def test_this_machine_is_looked_at_as_often_as_it_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pauses_of(monkeypatch, "local") == [0.2] * LOOKS
