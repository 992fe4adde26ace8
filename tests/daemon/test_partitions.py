"""A site of two partitions in the daemon: the journal, the orders and what a failure in one of them means."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from adaptor import api
from adaptor.api import GetStart, SlotsView
from adaptor.config.loading import parse_config
from adaptor.daemon import step
from adaptor.daemon.client.pictures import picture
from adaptor.daemon.client.site_views import read_slots, site_view
from adaptor.daemon.client.starts import read_starts
from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.daemon.sites import limits_of, terms_of
from adaptor.dashboard.pictures import PastUse, site_pictures
from adaptor.forecast.asked import AskedRequest
from adaptor.journal.views import pilots
from adaptor.model import Bound, EndedJob, Limits, QueueState
from backends.base import PartitionClosed
from backends.ceilings import Ceilings
from backends.partitions import Partitions
from tests.daemon.fake_site import FakeBackend, FakeServer, FakeSite

CONFIG = """
sites:
  here:
    backend: slurm
    heuristic: adaptive
    initial_tr: 60
    partitions:
      short: {limits: {max_pending_requests: 1, max_proc: 4, max_tr: 10m}}
      long: {partition: batch, limits: {max_proc: 2, max_tr: 2h}}
"""


class Partition(FakeBackend):
    """A cluster of 8 processors; its partitions are alike and know the same jobs."""

    def __init__(self, other: Partition | None = None) -> None:
        super().__init__()
        self.closed = ""
        if other is not None:
            self.reports = other.reports

    def queue_state(self) -> QueueState:
        if self.closed:
            raise PartitionClosed(self.closed)
        return super().queue_state()

    def ended_jobs(self) -> list[EndedJob]:
        return []

    def advertised_limits(self) -> Limits:
        return Limits(max_pending_requests=2, max_proc=8, max_tr=9 * 3600)


class TwoPartitions(FakeSite):
    def __init__(self, directory: Path) -> None:
        self.short = Partition()
        self.long = Partition(self.short)
        self.config = parse_config(CONFIG, "site.yaml").sites["here"]
        super().__init__(directory)

    def _state(self) -> Site:
        backend = Partitions({"short": self.short, "long": self.long})
        limits = limits_of(self.config, backend)
        core = Core(self.directory, self.journal, FakeServer(), {"here": terms_of(self.config, limits)})  # type: ignore[arg-type]
        state = Site("here", self.config, backend, limits, core)
        state.load_pilots()
        return state

    def step(self) -> None:
        asyncio.run(step.step(self.state))

    def slots(self) -> list[SlotsView]:
        return asyncio.run(read_slots(self.running, api.GetSlots()))

    def places(self) -> list[str]:
        """Of all pilots, as the journal has them."""
        return [each.partition for each in pilots(self.journal.connection, "1", (), 0.0)]


@pytest.fixture
def site(tmp_path: Path) -> TwoPartitions:
    return TwoPartitions(tmp_path / "state")


def test_limits_are_those_of_the_entry_of_the_site_and_of_the_scheduler(site: TwoPartitions) -> None:
    short = Limits(max_pending_requests=1, max_proc=4, max_tr=600)
    long = Limits(max_pending_requests=2, max_proc=2, max_tr=7200)
    whole = Limits(max_pending_requests=3, max_proc=4, max_tr=7200, partitions={"short": short, "long": long})
    assert site.state.memory.limits == whole
    given = msgspec.structs.replace(
        site.config, limits=msgspec.structs.replace(site.config.limits, max_pending_requests=2)
    )
    assert limits_of(given, site.state.backend).max_pending_requests == 2


def test_when_a_request_would_start_in_each_partition(site: TwoPartitions) -> None:
    """Each with what the scheduler allows there, whatever the configuration does."""
    site.short.most = Ceilings(
        requests=Bound(9, "x"), processors=Bound(8, "y"), seconds=Bound(600, "MaxTime"), whole=8, node=8
    )
    asked = GetStart(request=AskedRequest(tr=3600.0, processors=8))
    first, last = asyncio.run(read_starts(site.running, asked))
    assert (first.partition, last.partition) == ("long", "short")
    assert first.start is not None
    assert last.never == "it asks for 1h, and 10m is the most (MaxTime)"
    only = msgspec.structs.replace(asked, partition="long")
    assert [view.partition for view in asyncio.run(read_starts(site.running, only))] == ["long"]


def test_each_order_goes_to_its_partition_and_the_journal_knows_it(site: TwoPartitions) -> None:
    site.submit_bag(20)
    site.step()
    assert site.places()[0] == "short"
    assert set(site.places()) == {"short", "long"}
    assert {order.partition for order in site.short.orders} == {"short"}
    assert {order.partition for order in site.long.orders} == {"long"}
    told = site.told("issued")
    assert "in short (" in told[0]
    assert ", rather than long (" in told[0]


def test_a_restarted_daemon_knows_what_is_where(site: TwoPartitions) -> None:
    site.submit_bag(100)
    site.step()
    before = site.places()
    assert before.count("short") == 1
    site.restart()
    assert [pilot.partition for pilot in site.state.pilots.values()] == before
    site.submit_bag(100)
    site.step()
    assert site.places().count("short") == 1, "its own limit is used up"


def test_a_partition_that_refuses_is_avoided_and_the_other_goes_on(site: TwoPartitions) -> None:
    site.short.refuses = lambda _: True
    site.submit_bag(4)
    site.step()
    site.step()
    assert site.state.memory.pilots
    assert {pilot.partition for pilot in site.state.pilots.values()} == {"long"}
    site.long.refuses = lambda _: True
    site.submit_bag(4)
    site.step()
    site.step()
    said = site.told("withheld")[-1]
    assert "short: a task may need" in said
    assert "Memory specification can not be satisfied" in said


def test_tasks_longer_than_any_request_of_one_go_to_the_other(site: TwoPartitions) -> None:
    site.config = msgspec.structs.replace(site.config, initial_tr=type(site.config.initial_tr)(3000))
    site.restart()
    site.submit_bag(4)
    site.step()
    assert set(site.places()) == {"long"}
    assert not site.short.orders


def test_users_see_the_partitions(site: TwoPartitions) -> None:
    site.submit_bag(20)
    site.step()
    view = site_view(site.state)
    short, long = view.partitions
    assert (short.name, short.max_proc, short.queued) == ("short", 4, 1)
    assert (long.name, long.max_proc) == ("long", 2)
    assert view.queued == sum(each.queued for each in view.partitions)
    site.long.closed = "partition batch is down"
    assert [(each.partition, each.problem) for each in site.slots()] == [
        ("short", ""),
        ("long", "partition batch is down"),
    ]
    assert [each.closed for each in site_view(site.state).partitions] == ["", "partition batch is down"]


def test_the_live_page_has_a_picture_of_each_partition(site: TwoPartitions) -> None:
    site.submit_bag(20)
    site.step()
    seen = picture(SimpleNamespace(core=site.state.core, sites={"here": site.state}), api.GetPicture()).queues  # type: ignore[arg-type]
    assert [(each.site, each.partition, each.place) for each in seen] == [
        ("here", "short", "here/short"),
        ("here", "long", "here/long"),
    ]
    drawn = site_pictures(
        seen, PastUse(), pilots(site.journal.connection, "1", (), 0.0), [], seen[0].observed or 0
    )
    boxes = {each.site: [box.pilot for box in each.boxes] for each in drawn}
    places = dict(enumerate(site.places(), 1))
    assert boxes == {
        f"here/{name}": [id for id, place in places.items() if place == name] for name in ("short", "long")
    }
