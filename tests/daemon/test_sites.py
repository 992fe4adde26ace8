"""A scheduler that does not answer when the daemon starts: its limits are asked later."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.config.schema import Config, SiteConfig
from adaptor.daemon.sites import first_limits, unknown_limits
from adaptor.daemon.step import step
from backends.base import SchedulerError
from tests.daemon.fake_site import LIMITS, FakeBackend, FakeSite

SITE = SiteConfig(backend="local")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FakeSite]:
    site = FakeSite(tmp_path / "state")
    site.state.memory.know_limits(unknown_limits(SITE))
    site.state.memory.limits_known = False
    yield site
    site.journal.close()


def test_nothing_is_requested_until_they_are_known(site: FakeSite) -> None:
    site.backend.silent = SchedulerError("the login node is down")
    site.submit_bag(500)
    asyncio.run(step(site.state))
    assert not site.backend.orders
    assert "the login node is down" in site.told("withheld")[0]
    site.backend.silent = None
    asyncio.run(step(site.state))
    assert site.state.memory.limits == LIMITS
    assert "2 requests of 2 processors for 1h" in site.told("state")[0]
    assert site.states() == ["queued", "queued"]


def test_one_site_without_an_answer_does_not_stop_the_others() -> None:
    dead = FakeBackend()
    dead.silent = SchedulerError("down")
    config = Config(sites={"far": SITE, "near": SITE})
    assert first_limits(config, {"far": dead, "near": FakeBackend()}) == {"near": LIMITS}


def test_no_answer_at_all_names_every_site() -> None:
    dead = FakeBackend()
    dead.silent = SchedulerError("down")
    with pytest.raises(SchedulerError, match=r"far: .*down.*; near: .*down"):
        first_limits(Config(sites={"far": SITE, "near": SITE}), {"far": dead, "near": dead})
