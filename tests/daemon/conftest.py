"""A site of a daemon with a scheduler that says what a test wants; tests that are coroutines."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.client.asked_daemon import Daemon
from tests.daemon.fake_site import FakeSite
from tests.living import PATIENCE


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in a loop of its own, for at most a minute."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**given), PATIENCE))
    return True


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FakeSite]:
    site = FakeSite(tmp_path / "state")
    yield site
    site.journal.close()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """The daemon as its clients meet it."""
    daemon = Daemon(tmp_path / "state")
    yield daemon
    daemon.core.journal.close()
