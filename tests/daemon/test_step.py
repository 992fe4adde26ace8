"""How often a site is looked at that is woken all the time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from adaptor.config.loading import parse_config
from adaptor.config.policy import Policy, PolicyKeys
from adaptor.config.schema import SiteConfig
from adaptor.daemon import step
from adaptor.units import Duration

LOOKS = step.BURST + 10
SLURM = SiteConfig(backend="slurm")


def pauses_of(monkeypatch: pytest.MonkeyPatch, config: SiteConfig) -> list[float]:
    """Seconds slept after each look of a site that is woken during each, on a clock that stands still."""
    pauses = list[float]()

    async def look(site: Any) -> None:
        site.wake.set()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == LOOKS:
            raise asyncio.CancelledError

    async def scene() -> None:
        memory = SimpleNamespace(settings=SimpleNamespace(poll=15.0))
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
    pauses = pauses_of(monkeypatch, SLURM)
    assert pauses[: step.BURST] == [1.0] * step.BURST
    assert pauses[step.BURST :] == [7.5 * late for late in range(1, LOOKS - step.BURST + 1)]


def test_this_machine_is_looked_at_as_often_as_it_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pauses_of(monkeypatch, SiteConfig(backend="local")) == [0.2] * LOOKS


def test_an_operator_s_least_time_between_two_looks_is_kept_from_the_first_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = Policy(PolicyKeys(poll_interval=Duration(120)), path="policy.yaml")
    site = parse_config("sites: {hpc: {backend: slurm}}", "c.yaml", lambda: policy).sites["hpc"]
    assert pauses_of(monkeypatch, site) == [120.0 * look for look in range(1, LOOKS + 1)]


def test_nor_is_it_looked_at_more_often_while_pilots_end_with_the_daemon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = Policy(PolicyKeys(poll_interval=Duration(120)), path="policy.yaml")
    config = parse_config("sites: {hpc: {backend: slurm}}", "c.yaml", lambda: policy).sites["hpc"]
    pilots, done = [1, 2], list[object]()

    async def sleep(seconds: float) -> None:
        done.append(seconds)

    async def drive(site: Any, what: str) -> None:
        done.append(what)
        if what == "look":
            pilots.pop()

    def steps_of(site: Any) -> SimpleNamespace:
        return SimpleNamespace(observe_pilots=lambda: "look", cancel_unwanted=lambda: "cancel")

    async def cancel_all(site: Any, reason: str) -> None:
        done.append("cancel")

    monkeypatch.setattr(step, "cancel_all", cancel_all)
    monkeypatch.setattr(step, "drive", drive)
    monkeypatch.setattr(step, "step_of", steps_of)
    journal = SimpleNamespace(note_user_change_of_all=lambda why, now: None)
    core: Any = SimpleNamespace(journal=journal, now=lambda: 0.0)
    site: Any = SimpleNamespace(config=config, pilots=pilots)
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "sleep", sleep)
        asyncio.run(step.end_pilots(core, [site]))
    assert done == ["cancel", 120.0, "look", "cancel", 120.0, "look", "cancel"]
