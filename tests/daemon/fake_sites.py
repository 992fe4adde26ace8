"""Several sites around one journal and one broker, their schedulers played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.daemon.sites import terms_of
from adaptor.daemon.step import step
from adaptor.daemon.treasury import Costs
from adaptor.journal.journal import Journal
from adaptor.model import Limits
from adaptor.scheduling.bag import Bag
from adaptor.units import Duration
from tests.daemon.fake_site import CONFIG, FakeBackend, FakeServer, state_directory, submit_bag, told

LIMITS = Limits(max_pending_requests=2, max_proc=8, max_tr=3600)


class FakeSites:
    """`near` and `far` with 8 idle processors each, at a credit a processor-hour unless `costs` say more."""

    def __init__(
        self,
        directory: Path,
        names: Iterable[str] = ("near", "far"),
        costs: Mapping[str, Costs] | None = None,
    ) -> None:
        state_directory(directory)
        config = msgspec.structs.replace(CONFIG, pad=Duration(0))
        self.journal = Journal(directory)
        self.backends = {name: FakeBackend() for name in names}
        terms = dict.fromkeys(names, terms_of(config, LIMITS))
        core = Core(directory, self.journal, FakeServer(), terms, costs)  # type: ignore[arg-type]
        self.sites = {
            name: Site(name, config, backend, LIMITS, core) for name, backend in self.backends.items()
        }

    def submit_bag(self, tasks: int, *sites: str, budget: int | None = None, **wishes: Any) -> Bag:
        """`budget` in millionths of a credit."""
        return submit_bag(next(iter(self.sites.values())).core, tasks, budget, sites=sites, **wishes)

    def step(self, *names: str) -> None:
        for name in names:
            asyncio.run(step(self.sites[name]))

    def asked(self) -> dict[str, int]:
        """Processors in the requests of each site."""
        return {
            name: sum(order.request.p for order in backend.orders) for name, backend in self.backends.items()
        }

    def told(self, site: str, kind: str) -> list[str]:
        return told(self.journal, kind, site)
