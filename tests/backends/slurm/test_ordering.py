"""What withdrawing costs by Slurm's settings, and where a request is too deep in the queue for backfill."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.crafting.availability import Availability
from backends.slurm.nodes import find_site
from backends.slurm.ordering import Ordering, check_ordering, ordering, shrink_margin
from backends.slurm.placing.job_details import JobDetail
from backends.slurm.queue import SlurmSeen, queue_state
from tests.backends.slurm.slurm_rows import NOW, job, node

BACKFILL = {"SchedulerType": "sched/backfill"}
MULTIFACTOR = {"PriorityType": "priority/multifactor", "PriorityMaxAge": "7-00:00:00"}


@pytest.mark.parametrize(
    ("settings", "loses"),
    [
        ({}, True),
        ({"PriorityType": "priority/basic", "PriorityWeightAge": "0"}, True),
        ({**MULTIFACTOR, "PriorityWeightAge": "1000"}, True),
        ({**MULTIFACTOR, "PriorityWeightAge": "0"}, False),
        (MULTIFACTOR, False),
    ],
)
def test_a_request_loses_its_place_where_waiting_gains_one(settings: dict[str, str], loses: bool) -> None:
    assert ordering(settings).loses_age is loses
    told, _ = (each.text for each in check_ordering(settings, 4))
    assert told.endswith("loses that" if loses else "loses no place")


def test_how_deep_backfill_looks() -> None:
    assert ordering({"SchedulerType": "sched/builtin"}).tested is None
    assert ordering(BACKFILL).tested == 500
    deep = {**BACKFILL, "SchedulerParameters": "bf_max_job_test=20,xbf_max_job_user=1,bf_max_job_user=2"}
    assert (ordering(deep).tested, ordering(deep).tested_of_user) == (20, 2)
    assert ordering(deep).backfilled == 2
    assert [each.level for each in check_ordering(deep, 4)] == ["ok", "ok", "ok", "warning"]
    assert [each.level for each in check_ordering(deep, 2)] == ["ok", "ok", "ok"]


@pytest.mark.parametrize(
    ("release", "settings", "margin"),
    [
        ("26.05.5", BACKFILL, 0),
        ("26.11.0-0rc1", BACKFILL, 0),
        ("24.11.5", BACKFILL, None),
        ("22.05.8", BACKFILL, None),
        ("", BACKFILL, None),
        ("26.05.5", {"SchedulerType": "sched/builtin"}, None),
        ("26.05.5", {**BACKFILL, "SchedulerParameters": "bf_interval=2,time_min_as_soft_limit"}, None),
    ],
)
def test_which_slurm_gives_the_whole_slot(release: str, settings: dict[str, str], margin: int | None) -> None:
    known = {**settings, "SLURM_VERSION": release}
    assert shrink_margin(known) == margin
    told = list(check_ordering(known, 4))[1].text
    assert ("between the least" in told) == (margin is not None)
    assert ("1m 40s shorter" in told) == (margin is None and "bf_interval" not in str(settings))


def waiting(count: int, tested: int, ours: int | None = None) -> SlurmSeen:
    """Two nodes of 4, one in use; each waiting job is planned 100 s after the one before it.

    `ours`: the place of the one that is ours.
    """
    jobs = [job("1", 4, ("n1",))]
    jobs += [
        job(f"{place + 10}", 1, start=NOW + 100.0 * place, priority=1000 - place, planned_nodes=("n2",))
        for place in range(1, count + 1)
    ]
    details = {} if ours is None else {f"{ours + 10}": JobDetail(user="me")}
    return SlurmSeen(
        now=NOW,
        site=find_site([node("n1", 4), node("n2")], "batch"),
        jobs=jobs,
        ordering=Ordering(tested=tested),
        details=details,
        user="me",
    )


@pytest.mark.parametrize(
    ("count", "tested", "ours", "first"),
    [
        (4, 5, None, 0.0),  # the fifth is looked at
        (5, 5, None, 100.0),  # once one of five has started
        (8, 5, None, 400.0),
        (8, 5, 2, 0.0),  # ours is the second, so the next one is the third
        (8, 5, 7, 300.0),
    ],
)
def test_behind_what_backfill_looks_at_there_is_no_hole(
    count: int, tested: int, ours: int | None, first: float
) -> None:
    state = queue_state(waiting(count, tested, ours))
    barred = [each.end for each in state.running if each.id.startswith("beyond")]
    assert barred == ([NOW + first] if first else [])
    counted = Availability(msgspec.structs.replace(state, nodes=()))
    for free in (counted, Availability(state)):
        start = free.profile().earliest_start(1, 10.0)
        assert start >= NOW + first
