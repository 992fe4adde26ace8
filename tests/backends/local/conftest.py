"""Local sites of which nothing is left after a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adaptor.config.schema import SiteConfig
from tests.backends.local.local_site import LocalSite


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[Callable[..., LocalSite]]:
    """Makes local sites of so many processors; nothing of them is left after the test."""
    sites: list[LocalSite] = []

    def make(processors: int = 4, prologue: str = "", gpus: tuple[int | str, ...] = ()) -> LocalSite:
        folder = tmp_path / f"local-{len(sites)}"
        folder.mkdir()
        config = SiteConfig(backend="local", processors=processors, prologue=prologue, gpus=gpus)
        sites.append(LocalSite(folder, config))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


@pytest.fixture
def site(make_site: Callable[..., LocalSite]) -> LocalSite:
    """A local site of four processors."""
    return make_site(4)
