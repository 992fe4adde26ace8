"""A headless Chromium, where there is one (`tests/dashboard/install-chromium`)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def chromium_path() -> str | None:
    return shutil.which("chromium")


@contextmanager
def launched() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium_path(), args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Skips the test where there is none."""
    if chromium_path() is None:
        pytest.skip("no Chromium here; tests/dashboard/install-chromium installs Debian's")
    pytest.importorskip("playwright.sync_api")
    with launched() as browser:
        yield browser
