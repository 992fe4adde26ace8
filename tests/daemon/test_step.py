"""How often a site is looked at that is woken all the time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from adaptor.config.loading import parse_config
from adaptor.config.policy import Policy, PolicyKeys
from adaptor.config.schema import SiteConfig
from adaptor.daemon import step
from adaptor.units import Duration
from tests.daemon.fake_site import FakeSite

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
        site: Any = SimpleNamespace(config=config, memory=memory, wake=asyncio.Event(), polled=False)
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


class Clock:
    """That of the loop, as far as a poll reads it."""

    def __init__(self, site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
        self._site = site
        monkeypatch.setattr(step.asyncio, "get_running_loop", lambda: SimpleNamespace(time=lambda: self.now))
        self.now = 0.0

    def looks(self, seconds: int, every: int = 15) -> list[float]:
        """When polls wake the site from now on, which then finds nothing new."""
        state, found = self._site.state, list[float]()
        for _ in range(seconds // every):
            self.now += every
            step.poll(state)
            if state.wake.is_set():
                found.append(self.now)
                state.looked, state.polled = self.now, False
                state.wake.clear()
        return found


@pytest.fixture
def resting(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> FakeSite:
    """A site of Slurm, looked at each 15 s, whose only bag waits."""
    site.submit_bag(1)
    asyncio.run(step.step(site.state))
    site.state.config = SLURM
    site.state.memory.settings = msgspec.structs.replace(site.state.memory.settings, poll=15.0)
    site.state.looked = site.state.stirred = 0.0
    site.state.wake.clear()
    return site


def test_a_site_where_nothing_happens_is_looked_at_more_and_more_rarely(
    resting: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(resting, monkeypatch)
    assert clock.looks(120) == [15, 30, 45, 60, 75, 90, 105, 120]
    late = clock.looks(3600)
    assert late[-1] - late[-2] == 60, "once a minute in the end"
    assert len(late) < 80


def test_where_something_happens_polls_are_as_often_as_they_were(
    resting: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(resting, monkeypatch)
    clock.looks(3600)
    resting.state.stirred = clock.now
    assert clock.looks(60) == [3615, 3630, 3645, 3660]


@pytest.mark.parametrize("local", [True, False])
def test_a_site_is_looked_at_as_often_as_it_says_where_that_costs_nothing_or_time_decides(
    resting: FakeSite, monkeypatch: pytest.MonkeyPatch, local: bool
) -> None:
    if local:
        resting.state.config = SiteConfig(backend="local")
    else:
        resting.submit_bag(1, deadline=1e9)
    clock = Clock(resting, monkeypatch)
    clock.now = 3600.0
    assert clock.looks(60) == [3615, 3630, 3645, 3660]


def test_a_step_that_does_something_and_a_wake_of_its_own_count_as_events(site: FakeSite) -> None:
    async def scene() -> tuple[float, float]:
        state, now = site.state, asyncio.get_running_loop().time()
        state.stirred = -1.0
        await step.step(state)
        idle = state.stirred
        site.submit_bag(1)
        await step.step(state)
        return idle, state.stirred - now

    idle, busy = asyncio.run(scene())
    assert idle == -1.0
    assert busy >= 0.0
