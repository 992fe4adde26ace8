"""What the scheduler says of a waiting request: what never starts and what a limit keeps is taken back for a
smaller one, all is said, and new requests wait for the same limit."""

from __future__ import annotations

import math

import msgspec
import pytest

from adaptor.budget.accounting.ledger import Ledger
from adaptor.crafting.situation import Demand, Largest
from adaptor.decisions.actions import NODES, WAITS, Remark, WithdrawStuck
from adaptor.decisions.failures.shape_backoffs import Failures
from adaptor.decisions.failures.tried_sizes import KEPT, KEPT_IN_LIMITS, TriedSizes
from adaptor.decisions.held_off import avoided_partitions, why_failed
from adaptor.decisions.memory import Memory
from adaptor.decisions.pilot_rules import LIMITED, on_pilots
from adaptor.decisions.pilots import Pilot, expected_start, limited, observe
from adaptor.decisions.requests import one_trial_at_a_time, shape_of, smallest_to_try
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.model import Limits, PendingJob, PilotState, QueueState, Request
from adaptor.reports import Hold, JobReport, JobState, Remedy, Wait
from adaptor.resources import TaskSize
from tests.decisions.test_pilot_rules import NOW, QUEUED, RUNNING, WIDE, pilot, site
from tests.runtimes.known import known_runtimes

LIMIT = Wait("its account may hold no more (AssocGrpCpuLimit)", Hold.LIMIT, Remedy.NARROWER)
DEMAND = Demand(task=TaskSize(), waiting=8, runtime=600.0, shortest=600.0)
WAITING = pilot(
    QUEUED,
    request=Request(8, 3600),
    shape=DEMAND.shape,
    submitted=NOW - 60,
    predicted_start=NOW - 50,
    wait=LIMIT,
    limited_since=NOW - LIMITED,
)


def snapshot(*requests: Pilot, tried: TriedSizes | None = None) -> Snapshot:
    here = msgspec.structs.replace(
        site(), requests=requests, tried={} if tried is None else {(DEMAND.task, ""): tried}
    )
    return Snapshot(
        site="here",
        sites={"here": here},
        demands=(DEMAND,),
        ledger=Ledger(),
        memory=Memory(),
        work=True,
    )


def withdrawn(*requests: Pilot) -> list[WithdrawStuck]:
    return [action for action in on_pilots(snapshot(*requests)) if isinstance(action, WithdrawStuck)]


def test_a_request_that_never_starts_is_withdrawn_and_says_what_helps() -> None:
    never = pilot(WAITING, never="too long (PartitionTimeLimit)", wait=Wait(remedy=Remedy.SHORTER))
    (found,) = withdrawn(never)
    assert "PartitionTimeLimit" in found.reason
    assert (found.remedy, found.kept, found.last) == (Remedy.SHORTER, KEPT, False)


def test_where_nothing_smaller_is_of_use_tasks_of_the_shape_pause() -> None:
    smallest = pilot(WAITING, request=Request(8, 1), never="too long", wait=Wait(remedy=Remedy.SHORTER))
    assert [found.last for found in withdrawn(smallest)] == [True]
    other = pilot(WAITING, never="no account", wait=Wait(remedy=Remedy.OTHER))
    assert [found.last for found in withdrawn(other)] == [True]


def test_a_limit_is_met_by_a_smaller_request_where_none_of_ours_can_end() -> None:
    (found,) = withdrawn(WAITING)
    assert "AssocGrpCpuLimit" in found.reason
    assert (found.remedy, found.kept, found.last) == (Remedy.NARROWER, KEPT_IN_LIMITS, False)


def test_no_end_of_a_job_brings_minutes_back_so_a_smaller_request_is_tried_at_once() -> None:
    spent = pilot(WAITING, wait=Wait("used up", Hold.SPENT, Remedy.SMALLER), limited_since=NOW)
    assert withdrawn(spent)[0].kept == KEPT
    assert withdrawn(spent, pilot(RUNNING, id=9, processors=4)) == []


@pytest.mark.parametrize(
    "others",
    [
        (pilot(WAITING, limited_since=NOW - LIMITED + 1),),
        (pilot(WAITING, request=Request(1, 3600)),),
        (pilot(WAITING, wait=Wait("jobs", Hold.LIMIT, Remedy.OTHER)),),
        (pilot(WAITING, leaving="told"),),
        (WAITING, pilot(RUNNING, id=9, processors=4)),
    ],
    ids=["just now", "smallest", "counts jobs", "leaves", "one runs"],
)
def test_a_limit_is_waited_for(others: tuple[Pilot, ...]) -> None:
    assert withdrawn(*others) == []


def test_the_reason_is_remarked_on_and_the_remark_goes_with_it() -> None:
    remarks = [each for each in on_pilots(snapshot(WAITING)) if isinstance(each, Remark)]
    assert remarks == [Remark(2, f"waits: {LIMIT.said}", about=WAITS)]
    missing = [each for each in on_pilots(snapshot(WIDE)) if isinstance(each, Remark)]
    assert [each.about for each in missing] == [NODES]
    noted = pilot(WAITING, wait=Wait(), limited_since=None, notes={WAITS: "waits: …"})
    assert Remark(2, "", about=WAITS) in list(on_pilots(snapshot(noted)))


def test_new_requests_wait_for_the_limit_that_keeps_one_waiting() -> None:
    assert limited([WAITING, RUNNING]) == {"": f"pilot 2 waits: {LIMIT.said}"}
    assert limited([pilot(WAITING, leaving="told"), pilot(WAITING, wait=Wait("held", Hold.ITS_OWN))]) == {}
    failures = Failures()
    rules = site().rules
    assert LIMIT.said in why_failed(rules, failures, limited([WAITING]), DEMAND.shape, NOW)
    several = Limits(
        max_pending_requests=2, max_proc=8, max_tr=60, partitions={"a": rules.limits, "b": rules.limits}
    )
    in_a = pilot(WAITING, partition="a")
    there = SiteFacts(
        now=NOW,
        name="here",
        rules=msgspec.structs.replace(rules, limits=several),
        heuristic="adaptive",
        queue=None,
        requests=(in_a,),
    )
    assert avoided_partitions(there, [DEMAND], NOW).keys() == {(DEMAND.shape, "a")}
    assert why_failed(there.rules, failures, limited([in_a]), DEMAND.shape, NOW) == ""


def test_a_start_is_expected_only_where_it_may_come() -> None:
    queue = QueueState(now=NOW, processors=8, pending=(PendingJob("7", 8, 3600, NOW + 500),))
    free = pilot(WAITING, wait=Wait(), predicted_start=NOW + 100)
    assert expected_start(free, None, NOW) == NOW + 100
    assert expected_start(free, queue, NOW) == NOW + 500, "the scheduler's plan comes first"
    assert expected_start(free, None, NOW + 100) is None, "it has passed"
    assert expected_start(pilot(free, wait=LIMIT), queue, NOW) is None
    assert expected_start(pilot(free, never="no"), queue, NOW) is None
    assert expected_start(RUNNING, queue, NOW) is None


def test_a_report_says_since_when_a_limit_holds_and_what_it_got() -> None:
    first = pilot(WAITING, wait=Wait(), limited_since=None)
    waits = JobReport(id="7", tag="t", state=JobState.QUEUED, wait=LIMIT)
    seen = observe(observe(first, waits, NOW), waits, NOW + 15)
    assert (seen.wait, seen.limited_since) == (LIMIT, NOW)
    runs = JobReport(id="7", tag="t", state=JobState.RUNNING, start=NOW + 20, held=16, wait=LIMIT)
    seen = observe(seen, runs, NOW + 30)
    assert (seen.wait, seen.limited_since, seen.held, seen.holds) == (Wait(), None, 16, 16)
    less = msgspec.structs.replace(runs, held=8)
    assert observe(seen, less, NOW + 45).held == 16, "nodes that it gives back are counted apart"


def test_while_nothing_of_a_size_has_started_one_request_tries_it() -> None:
    tried = TriedSizes().failed(Request(8, 3600), Remedy.NARROWER, "too wide", NOW + KEPT)
    found = one_trial_at_a_time(snapshot(tried=tried).here, DEMAND)
    assert found.largest == (("", Largest(4, 3600, "too wide")),)
    assert (found.most, "too wide" in found.why_most) == (4, True)
    waiting = pilot(WAITING, request=Request(4, 3600), wait=Wait())
    found = one_trial_at_a_time(snapshot(waiting, tried=tried).here, DEMAND)
    assert (found.most, "pilot 2 shows first" in found.why_most) == (0, True)
    worked = tried.started(Request(7, 3600))
    assert one_trial_at_a_time(snapshot(waiting, tried=worked).here, DEMAND).most == math.inf


def test_while_nothing_is_known_of_the_runtimes_a_short_request_may_be_tried() -> None:
    here = snapshot().here
    assert smallest_to_try(shape_of(here, DEMAND), DEMAND) == Request(1, 1)
    known = msgspec.structs.replace(DEMAND, times=known_runtimes(finished=1, mean=600.0))
    assert smallest_to_try(shape_of(here, known), known) == Request(1, 600)
    assert PilotState.QUEUED is WAITING.state
