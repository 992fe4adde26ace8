"""What users are shown of tasks that a worker holds, and of credits that nobody has asked for."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from unittest.mock import Mock

import pytest

from adaptor import __version__, api
from adaptor.cli.sentences import held_off_lines
from adaptor.daemon.client.commands import ClientEndpoint, serve
from adaptor.daemon.server import FOREIGN
from adaptor.daemon.step import step
from adaptor.errors import AdaptorError
from adaptor.protocol.messages import Report
from tests.daemon.budgeted_site import set_budget
from tests.daemon.fake_site import FakeSite
from tests.daemon.lived_bags import begin, hear, leased, live


def asked(site: FakeSite, question: api.Question[Any]) -> Any:
    return asyncio.run(serve(site.running, api.decode_question(api.encode_question(question))))


def test_a_task_runs_when_its_worker_has_said_so(site: FakeSite) -> None:
    bag = site.submit_bag(5)
    worker = f"w{begin(site)}"
    held = leased(site, worker)
    hear(site, worker, Report(started=held[:1]))
    told = asked(site, api.GetTasks(bag))
    running = [task for task in told if task.state == "running"]
    assert [task.task for task in running] == [held[0].task]
    assert running[0].started is not None
    assert {task.state for task in told} == {"running", "waiting"}


def test_the_time_of_tasks_that_run_is_not_wasted(site: FakeSite) -> None:
    bag = site.submit_bag(5)
    pilot = begin(site)
    held = leased(site, f"w{pilot}")
    hear(site, f"w{pilot}", Report(started=held[:1]))
    (lease,) = (
        worker.held[held[0]] for worker in site.state.core.broker.of_pilot(pilot) if held[0] in worker.held
    )
    assert lease.started is not None
    lease.started -= 3.0
    (shown,) = (each for each in asked(site, api.GetPilots()) if each.id == pilot)
    assert shown.running == pytest.approx(3.0, abs=1.0)
    assert shown.used == 0
    totals = asked(site, api.GetReport(bag)).totals
    assert totals.running >= 3.0
    assert totals.paid == pytest.approx(totals.running + totals.wasted)
    assert asked(site, api.GetAdvice(bag)).measured.paid == pytest.approx(totals.wasted, abs=1.0)


def test_credits_are_reported_where_somebody_has_set_a_price_or_a_budget(site: FakeSite) -> None:
    first = live(site)
    told = asked(site, api.GetReport(first))
    assert told.credits is None
    second = site.submit_bag(3)
    set_budget(site, second, 5.0)
    told = asked(site, api.GetReport(second))
    assert told.credits is not None
    assert told.credits.budget == 5.0


def test_advice_counts_on_the_queue_that_was_read(site: FakeSite) -> None:
    bag = live(site, tasks=6)
    told = asked(site, api.GetAdvice(bag))
    assert told.measured.done == 6
    assert told.measured.longest == 0.5
    assert told.measured.first_tr is not None


@pytest.mark.parametrize(("question", "again"), [(api.Pause([1]), True), (api.GetBags(), False)])
def test_an_internal_error_amid_a_change_lets_the_daemon_begin_again_from_the_journal(
    question: api.Question[Any], again: bool
) -> None:
    stall = Mock()
    running = Mock(stalled="")
    running.core.broker.pause.side_effect = RuntimeError("a fault")
    running.core.now.side_effect = RuntimeError("a fault")
    endpoint = ClientEndpoint(running, stall, Mock(), Mock(), Mock())
    asyncio.run(endpoint.receive([(b"7", api.encode_question(question))]))
    assert stall.called is again


@pytest.mark.parametrize("identity", [b"7", FOREIGN + b"7"])
def test_a_client_of_another_version_may_ask_what_never_changes(site: FakeSite, identity: bytes) -> None:
    """It would not understand the answers to other questions, and might mean something else by them."""
    bag = site.submit_bag(3)
    running = Mock(core=site.state.core, sites={"here": site.state}, stalled="")
    running.view.return_value = api.DaemonView(pid=7, host="here", version="1")
    answers: list[bytes] = []

    def send(_identity: bytes, data: bytes) -> None:
        answers.append(data)

    endpoint = ClientEndpoint(running, Mock(), send, Mock(), Mock())
    questions: list[api.Question[Any]] = [api.GetDaemon(), api.Cancel([bag]), api.Stop()]
    asyncio.run(endpoint.receive([(identity, api.encode_question(each)) for each in questions]))
    assert api.decode_answer(api.GetDaemon(), answers[0]).pid == 7
    running.stop.assert_called_once_with(pilots=False)
    if identity.startswith(FOREIGN):
        with pytest.raises(AdaptorError, match=f"the daemon has version {re.escape(__version__)}"):
            api.decode_answer(api.Cancel([bag]), answers[1])
    assert (bag in site.state.core.broker.state.bags) is identity.startswith(FOREIGN)


def test_a_bag_whose_request_is_refused_says_why_at_once(site: FakeSite) -> None:
    site.backend.refuses = lambda order: bool(order.task.memory)
    site.submit_bag(1, memory=2**30)
    site.submit_bag(20)
    asyncio.run(step(site.state))
    assert sorted(site.states()) == ["queued", "refused"]
    refused, other = asked(site, api.GetBags("all")).bags
    assert refused.held_off.startswith("here: the last request failed (")
    assert refused.held_off.endswith("a smaller one is tried")
    assert other.held_off == ""
    assert held_off_lines([refused]) == [f"bag {refused.id}: {refused.held_off}"]
