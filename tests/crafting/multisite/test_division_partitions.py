"""A site with several partitions beside another one: each partition is a place with a queue of its own."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.crafting.multisite.division import divide, elsewhere
from adaptor.crafting.places import Place
from adaptor.crafting.serving import SOONER
from adaptor.crafting.situation import PilotView, SiteRules, SiteState
from adaptor.model import Limits, PendingJob, QueueState, RunningJob
from backends.partitions import most_of, together
from tests.crafting.planner_views import queued

from .division_sites import NOW, bag, site, standing

HOUR = 3600


def parted(
    *pilots: PilotView, busy_for: float = 0.0, pending: tuple[PendingJob, ...] = (), max_tr: int = HOUR
) -> list[Place]:
    """`wide` has 32 processors, all busy for so long; `small` has 8, and the pending jobs.

    `max_tr`: seconds of a request in `small`.
    """
    running = (RunningJob("local", 32, NOW + busy_for),) if busy_for else ()
    queues = {
        "wide": QueueState(now=NOW, processors=32, running=running),
        "small": QueueState(now=NOW, processors=8, pending=pending),
    }
    limits = {
        "wide": Limits(max_pending_requests=4, max_proc=32, max_tr=HOUR),
        "small": Limits(max_pending_requests=4, max_proc=8, max_tr=max_tr),
    }
    view = SiteState(
        now=NOW,
        queue=together(queues),
        rules=SiteRules(limits=most_of(limits)),
        heuristic="adaptive",
        requests=pilots,
    )
    return standing(view)


def gets(far: list[Place], tasks: int = 400) -> int:
    return sum(divide({"near": site(), "far": far}, (bag(tasks),))["far"].uncovered)


def test_a_site_is_as_soon_as_its_soonest_partition() -> None:
    assert gets(parted()) == gets(site(32, max_proc=32)), "the wide one"
    assert gets(parted(busy_for=2 * HOUR)) == gets(site(8, max_proc=8)), "the small one"


def test_a_partition_whose_requests_are_too_short_does_not_count() -> None:
    assert gets(parted(busy_for=2 * HOUR, max_tr=30)) == 0


def test_a_partition_in_which_requests_fail_does_not_count() -> None:
    places = parted(busy_for=2 * HOUR)
    demand = bag(400).at["far"]
    seen = msgspec.structs.replace(places[0].site, avoided={(demand.shape, "small"): "invalid account"})
    assert gets([msgspec.structs.replace(place, site=seen) for place in places]) == 0


def test_a_queued_pilot_starts_as_its_own_partition_says() -> None:
    pilot = msgspec.structs.replace(queued(1, 8, 600), job="ours", partition="small")
    far = parted(pilot, pending=(PendingJob("ours", 8, 600, NOW + 1000.0),))
    (near,) = elsewhere({"near": site(heuristic="completion"), "far": far}, [bag(100)], "near")
    (member,) = near.values()
    assert member.start == pytest.approx(SOONER * 1000.0)
