"""Which queued pilots are kept though no task waits for them."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteState, SubmitRequest, Withdraw
from adaptor.model import Limits, PilotState, QueueState, Request, RunningJob
from adaptor.resources import TaskSize
from adaptor.runtimes.known import KnownRuntimes
from tests.runtimes.known import known_runtimes

LIMITS = Limits(max_pending_requests=3, max_proc=64, max_tr=36_000)
MANY = Limits(max_pending_requests=3, max_proc=64, max_tr=36_000, max_pilots=100)
UNKNOWN = known_runtimes(mean_start=0.0, first_start=0.0)
ALIKE = known_runtimes(finished=10, mean=600.0, longest=600.0, mean_start=0.0, first_start=0.0)


def all_run(times: KnownRuntimes = UNKNOWN, heuristic: str = "completion", answers: bool = True) -> SiteState:
    """All tasks run in a pilot that has an hour left, and a longer one is queued."""
    first = PilotView(
        id=1, job="1", state=PilotState.RUNNING, request=Request(20, 4100), started=-500.0, ends=3600.0,
        processors=20,
    )  # fmt: skip
    second = PilotView(id=2, job="2", state=PilotState.QUEUED, request=Request(20, 36_000), submitted=-500.0)
    queue = QueueState(now=500.0, processors=64, running=(RunningJob("1", 20, 3600.0),))
    return SiteState(
        now=500.0,
        queue=queue if answers else None,
        rules=SiteRules(limits=LIMITS, time_resolution=60),
        heuristic=heuristic,
        requests=(first, second),
        demands=(Demand(waiting=0, running=20, runtime=600.0, shortest=600.0, times=times),),
    )


@pytest.mark.parametrize("answers", [True, False], ids=["", "the scheduler does not answer"])
def test_a_request_is_kept_while_tasks_run_that_may_need_it(answers: bool) -> None:
    assert plan(all_run(answers=answers)) == []


@pytest.mark.parametrize("seen", [all_run(ALIKE), all_run(heuristic="adaptive")], ids=["known", "adaptive"])
def test_a_request_that_no_running_task_will_need_is_withdrawn(seen: SiteState) -> None:
    assert plan(seen) == [Withdraw(2, "no task waits (20 running)")]


def test_a_request_is_not_kept_for_tasks_of_others() -> None:
    """The bag of those that run has pilots of its own."""
    seen = all_run()
    theirs = msgspec.structs.replace(seen.demands[0], bag=7)
    first = msgspec.structs.replace(seen.requests[0], bag=7)
    nobodys = msgspec.structs.replace(seen, demands=(theirs,), requests=(first, seen.requests[1]))
    assert plan(nobodys) == [Withdraw(2, "no task waits (0 running)")]


@pytest.mark.parametrize("heuristic", ["elastic", "completion", "adaptive"])
def test_a_request_too_narrow_for_all_tasks_that_wait_is_withdrawn(heuristic: str) -> None:
    """Those for which it was made have ended; the others need requests of their own."""
    seen = all_run(heuristic=heuristic)
    narrow = msgspec.structs.replace(seen.requests[1], request=Request(1, 36_000), shape=(TaskSize(), None))
    wide = Demand(task=TaskSize(processors=4), waiting=1, runtime=600.0, shortest=600.0, times=UNKNOWN)
    seen = msgspec.structs.replace(seen, requests=(narrow,), demands=(wide,), rules=SiteRules(limits=MANY))
    planned = plan(seen)
    assert planned[0] == Withdraw(2, "1 processor cannot run any waiting task: the narrowest needs 4")
    assert [made.crafted.request.p for made in planned if isinstance(made, SubmitRequest)] == [4]
