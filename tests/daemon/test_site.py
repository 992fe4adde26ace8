"""One site's loop against a scheduler that refuses, hangs, lies and forgets."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import NoReturn

import msgspec
import pytest

from adaptor.api import GetTasks, GetWhy
from adaptor.daemon.step import cancel_all
from adaptor.decisions.observation import demands_of
from adaptor.decisions.pilot_rules import ARRIVAL, LEFT
from adaptor.decisions.pilots import Arrival
from adaptor.errors import JournalError
from adaptor.journal.pilot_rows import pilots_in_system
from adaptor.journal.queries import answer
from adaptor.journal.views import tasks
from adaptor.model import Request
from adaptor.reports import JobState, Remedy
from adaptor.shortfalls import Shortfall
from adaptor.units import format_duration
from backends.base import SchedulerError, SubmitRefused, SubmitUncertain
from tests.alike import alike
from tests.daemon.budgeted_site import steps
from tests.daemon.fake_site import FakeSite

GIB = 2**30


def test_without_tasks_nothing_is_asked_or_requested(site: FakeSite) -> None:
    site.backend.silent = SchedulerError("nobody should ask")
    steps(site)
    assert site.state.memory.problem == ""
    assert not site.backend.orders


def test_the_margin_that_a_scheduler_tells_with_its_first_answer_holds(site: FakeSite) -> None:
    assert site.state.memory.rules.slot_margin == 0
    site.backend.slot_margin, site.backend.time_resolution, site.backend.shrink_margin = 20, 5, 3
    site.submit_bag(2)
    steps(site)
    rules = site.state.memory.rules
    assert (rules.slot_margin, rules.time_resolution, rules.shrink_margin) == (20, 5, 3)


def test_what_the_backend_does_not_know_is_told_once(site: FakeSite) -> None:
    site.backend.unknown = ("unknown job state 'X'",)
    site.submit_bag(500)
    steps(site, 3)
    assert site.told("problem") == ["unknown job state 'X'"]


def test_a_refused_request_is_told_and_not_repeated_at_once(site: FakeSite) -> None:
    site.backend.on_submit = SubmitRefused("invalid partition", Remedy.OTHER)
    site.submit_bag(500)
    steps(site, 3)
    assert site.states() == ["refused"]
    assert "invalid partition" in site.told("refused")[0]
    assert "next try at" in site.told("withheld")[-1]


def test_a_bag_that_was_refused_and_cancelled_leaves_no_trace(site: FakeSite) -> None:
    site.backend.refuses = lambda order: bool(order.task.memory)
    bad = site.submit_bag(1, memory=GIB)
    steps(site)
    site.state.core.broker.cancel(bad)
    steps(site)
    site.backend.refuses = lambda _: False
    site.submit_bag(1, memory=GIB)
    steps(site)
    assert site.states() == ["refused", "queued"]


def test_a_scheduler_that_refuses_every_shape_is_left_in_peace(site: FakeSite) -> None:
    site.backend.refuses = lambda _: True
    for number in range(1, 30):
        site.submit_bag(1, memory=number * GIB)
    steps(site, 5)
    sizes = [(order.task, order.request) for order in site.backend.orders]
    assert len(sizes) == len(set(sizes)) == 8, "two in each step, until three shapes have failed in a row"
    assert "next try at" in site.told("withheld")[-1]


def test_tasks_that_no_node_can_hold_fail_with_the_reason(site: FakeSite) -> None:
    site.backend.node_sizes = alike(4, 4, 16 * GIB)
    bad, good = site.submit_bag(3, memory=100 * GIB), site.submit_bag(20)
    steps(site, 2)
    assert bad not in site.state.core.broker.state.bags
    failed = tasks(site.journal.connection, GetTasks(bad, ["failed"], -1, 10))
    assert [task.error for task in failed] == 3 * [
        "no node can run it: here: each needs 100G on one node with 1 processor, and such a node has 16G; "
        "ask for less memory"
    ]
    assert set(site.states()) == {"queued"}
    assert good in site.state.core.broker.state.bags


def test_nodes_that_give_less_or_nothing_are_named_once(site: FakeSite) -> None:
    site.submit_bag(2)
    steps(site)
    pilot = site.state.pilots[1]
    site.backend.say(pilot.tag, JobState.RUNNING, nodes=("n1", "n2"))
    less = Shortfall("memory", 2 * GIB, GIB, "cgroup")
    pilot = pilot.but(started=time.time() - ARRIVAL - 5)
    site.state.memory.keep(pilot.heard(time.time() - ARRIVAL - 1, "n1", Arrival(1, (less,))))
    steps(site, 3)
    told = site.told("problem")
    assert [text for text in told if "n1 gave 1G of 2G of memory (cgroup)" in text] == told[:1]
    assert [text for text in told if "no worker has called from n2 for 1m after the first" in text] == told[
        1:
    ]
    assert all(text in site.state.pilots[1].note for text in told)
    site.state.memory.keep(site.state.pilots[1].heard(time.time(), "n2", Arrival(1)))
    steps(site)
    assert site.state.pilots[1].note == told[0], "the worker of n2 has come late"


def test_a_pilot_whose_workers_are_all_gone_is_ended(site: FakeSite) -> None:
    site.submit_bag(1)
    steps(site)
    pilot = site.state.pilots[1]
    site.backend.say(pilot.tag, JobState.RUNNING)
    site.state.memory.keep(pilot.heard(time.time(), "n1", Arrival(pilot.request.p)))
    steps(site)
    assert site.states() == ["running"], "it may be between two workers"
    pilot = site.state.pilots[1]
    assert pilot.without_worker_since is not None
    site.state.memory.change(pilot, without_worker_since=pilot.without_worker_since - LEFT - 1)
    steps(site, 2)
    assert site.states()[0] == "cancelled"
    assert "none of its workers has answered" in site.pilots()[0][2]


def test_a_submit_that_hangs_counts_until_it_is_found(site: FakeSite) -> None:
    site.backend.on_submit = SubmitUncertain("sbatch was given up after 30 s")
    site.backend.takes_it_all_the_same = True
    site.submit_bag(1)
    steps(site)
    assert site.states() == ["submitting"]
    steps(site)
    assert site.states() == ["queued"], "found by its tag"
    assert len(site.backend.orders) == 1, "and not submitted twice"


def test_where_the_scheduler_forgets_ended_jobs_the_end_is_what_the_script_wrote(site: FakeSite) -> None:
    site.submit_bag(1)
    steps(site)
    (order,) = site.backend.orders
    site.backend.say(order.tag, JobState.RUNNING)
    steps(site)
    (pilot,) = site.state.pilots.values()
    site.backend.reports.clear()
    began = pilot.started or 0.0
    (order.directory / "pilot-end.txt").write_text(f"0 no {began:.0f} {began + 30:.0f}")
    steps(site)
    assert site.states()[0] == "completed"
    (ended,) = site.journal.connection.execute("SELECT ended FROM pilot WHERE id = 1").fetchone()
    assert ended == pytest.approx(began + 30, abs=1)


def test_a_person_waits_for_one_hung_question_only(site: FakeSite) -> None:
    asked: list[str] = []

    def hang(name: str) -> str:
        asked.append(name)
        raise SchedulerError("qstat did not answer within 30s")

    async def both() -> list[str | None]:
        first, second = (site.state.ask(lambda n=n: hang(n), patient=n == "step") for n in ("step", "view"))  # type: ignore[misc]
        return list(await asyncio.gather(first, second))

    assert asyncio.run(both()) == [None, None]
    assert asked == ["step"]
    assert "did not answer" in site.state.memory.problem
    assert asyncio.run(site.state.ask(lambda: "an answer", patient=False)) == "an answer"


def test_killed_in_the_middle_of_a_submit(site: FakeSite) -> None:
    site.backend.on_submit = SubmitUncertain("killed")
    site.backend.takes_it_all_the_same = True
    site.submit_bag(1)
    steps(site)
    site.backend.on_submit = None
    site.restart()
    steps(site, 2)
    assert site.states() == ["queued"]
    assert len(site.backend.orders) == 1


def test_after_a_clock_was_set_back_pilots_are_followed_and_predictions_of_it_dropped(site: FakeSite) -> None:
    site.submit_bag(1)
    steps(site)
    site.journal.note_clock_set(time.time(), "the clock was set back by 1h")
    site.journal.connection.execute("UPDATE pilot SET submitted = submitted + 3600")
    site.restart()
    (pilot,) = site.state.pilots.values()
    assert pilot.predicted_start is None
    site.backend.say(pilot.tag, JobState.RUNNING)
    steps(site)
    assert site.states() == ["running"]
    assert site.state.memory.waits.worst(time.time()) is None, "no wait is learned across a clock"
    assert site.told("problem") == ["the clock was set back by 1h"]


def test_a_scheduler_that_does_not_answer_changes_nothing(site: FakeSite) -> None:
    site.submit_bag(4)
    steps(site)
    before = site.pilots()
    site.backend.silent = SchedulerError("squeue: connection refused")
    steps(site, 20)
    assert site.pilots() == before
    assert site.state.memory.problem == "squeue: connection refused"
    assert site.told("problem") == ["squeue: connection refused"], "told once"
    site.backend.silent = None
    steps(site)
    assert site.state.memory.problem == ""


def test_a_scheduler_that_is_silent_in_two_ways_is_told_of_once_in_each(site: FakeSite) -> None:
    site.submit_bag(4)
    steps(site)
    problems = itertools.cycle(["squeue: connection refused", "sacct: connection refused"])

    def refuse(*_: object) -> NoReturn:
        raise SchedulerError(next(problems))

    site.backend.queue_state = site.backend.jobs = refuse  # type: ignore[method-assign]
    steps(site, 20)
    assert sorted(site.told("problem")) == ["sacct: connection refused", "squeue: connection refused"]


def test_a_request_that_can_never_start_is_withdrawn_told_and_not_repeated_at_once(site: FakeSite) -> None:
    site.submit_bag(1)
    steps(site)
    site.backend.say(site.backend.orders[0].tag, JobState.QUEUED, never="the walltime is over MaxTime")
    steps(site, 5)
    ((_, state, reason),) = site.pilots()
    assert state == "withdrawn"
    assert "MaxTime" in reason
    assert "next try at" in site.told("withheld")[-1]


def test_a_job_that_was_given_up_and_turns_up_is_cancelled(site: FakeSite) -> None:
    site.submit_bag(1)
    steps(site)
    site.backend.say(site.state.tag_prefix + "999", JobState.RUNNING)
    steps(site)
    assert "job-999" in site.backend.cancelled


def test_jobs_of_another_site_on_the_same_cluster_are_left_alone(site: FakeSite) -> None:
    site.submit_bag(1)
    site.backend.say(site.state.tag_prefix.replace("here", "here-2") + "5", JobState.RUNNING)
    steps(site, 2)
    assert site.backend.cancelled == []


def test_pilots_that_run_no_task_do_not_follow_one_another_for_ever(site: FakeSite) -> None:
    site.submit_bag(1)
    for _ in range(12):
        steps(site)
        site.backend.say(site.backend.orders[-1].tag, JobState.COMPLETED)
    assert len(site.backend.orders) == 3
    assert "3 pilots in a row" in site.told("withheld")[-1]


def test_all_can_be_taken_back(site: FakeSite) -> None:
    site.submit_bag(500)
    steps(site)
    asyncio.run(cancel_all(site.state, "stopped"))
    assert sorted(site.backend.cancelled) == ["job-1", "job-2"]


def test_a_journal_that_cannot_be_written_stops_the_step_before_the_submit(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> int:
        raise JournalError("the disk is full")

    site.submit_bag(1)
    monkeypatch.setattr(site.journal, "add_pilots", full)
    with pytest.raises(JournalError):
        steps(site)
    assert not site.backend.orders


def test_a_request_that_its_owner_alters_is_in_tables_charges_and_the_explanation(site: FakeSite) -> None:
    site.submit_bag(500)
    steps(site)
    pilot = next(iter(site.state.pilots.values()))
    was = pilot.request
    altered = Request(1, was.tr + 60)
    site.backend.asks_for(pilot.tag, altered)
    steps(site)
    row = next(row for row in site.journal.read(pilots_in_system) if row.id == pilot.id)
    assert Request(row.p, row.tr) == altered
    reserved = site.state.core.treasury.ledger.open_pilots[pilot.id]
    assert Request(reserved.p, reserved.tr) == altered
    told = f"the scheduler has it as {_in_words(altered)}, no longer as {_in_words(was)}"
    assert site.told("state").count(told) == 1
    site.restart()
    assert site.state.pilots[pilot.id].request == altered
    reserved = site.state.core.treasury.ledger.open_pilots[pilot.id]
    assert Request(reserved.p, reserved.tr) == altered


def _in_words(request: Request) -> str:
    return f"{request.p} × {format_duration(request.tr)}"


def test_each_bag_has_its_reason_and_one_that_no_longer_waits_has_none(site: FakeSite) -> None:
    bags = [site.submit_bag(2, budget=1) for _ in range(2)]
    first, second = demands_of(site.state.core.broker, "here")
    for number in range(1, 4):
        site.state.withhold(f"reason {number}", first)
        site.state.withhold("another reason", second)
    site.state.withhold("not of these", msgspec.structs.replace(first, payers={}))

    def why(bag: int) -> list[str]:
        lines = answer(site.journal.connection, GetWhy(bag), time.time()).lines
        return [line.text for line in lines if line.kind == "withheld"]

    assert [why(bag) for bag in bags] == [["reason 3"], ["another reason"]]
    assert len(site.told("withheld")) == 2
