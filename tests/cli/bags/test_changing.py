"""`pause`, `resume` and `change`: which bags they mean, and what they say."""

from __future__ import annotations

import time

import pytest

from adaptor import api
from adaptor.cli.bags.changing import change, retry
from adaptor.daemon import process
from adaptor.guard_rails import EarlySignal, MostFails, TimeLimit
from adaptor.resources import OwnNeeds
from tests.cli.fake_control import bag_view, running_bag
from tests.cli.invoking import Cli, Serve

SHORT = "bag 5 is paused: 0.01 credits are left: adaptor change 5 --budget 0.3"


@pytest.mark.parametrize(
    ("command", "question", "done", "other", "why"),
    [
        (["pause"], api.Pause, "paused", running_bag(5, paused=SHORT), SHORT),
        (["resume"], api.Resume, "resumed", running_bag(5, paused=SHORT), SHORT),
        (["resume"], api.Resume, "resumed", running_bag(5), "bag 5 is not paused"),
        (
            ["change", "--priority", "-2"],
            api.ChangeOptions,
            "changed",
            bag_view(5, ended=9.0, done=1, failed=1, tasks=2),
            "bag 5 has ended; adaptor retry 5 runs its failed tasks again",
        ),
    ],
)
def test_bags_are_steered_and_those_that_stay_say_why(
    cli: Cli, serve: Serve, command: list[str], question: type, done: str, other: api.BagView, why: str
) -> None:
    server = serve({api.GetBags: api.Bags([bag_view(3)]), question: [3]})
    assert cli(*command, "3").out == f"bag 3: {done}\n"
    server.answers[api.GetBags] = lambda asked: api.Bags(
        [other] if asked.selector == "5" else [bag_view(3), other]
    )
    assert cli(*command, "3-9").out == f"bag 3: {done}\n{why}\n"
    assert cli(*command, "3-9", "--json").value == {"bags": [3]}
    assert server.asked(question)[-1].bags == [3, 5]
    server.answers[question] = []
    outcome = cli(*command, "5")
    assert outcome.code == 2
    assert outcome.err == f"adaptor: {why}\n"


def test_what_is_changed(cli: Cli, serve: Serve) -> None:
    answers = {api.GetBags: api.Bags([bag_view(3)]), api.ChangeOptions: [3]}
    server = serve(answers)
    cli("change", "3", "--max-running", "0", "--retries", "2", "--max-fails", "5%")
    (asked,) = server.asked(api.ChangeOptions)
    assert asked == api.ChangeOptions([3], api.OptionChanges(None, 0, 2, MostFails(share=0.05)))
    cli(
        "change",
        "3",
        "--time",
        "20m",
        "--timeout",
        "300%",
        "--site",
        "a,b",
        "--notify",
        "me",
        "--deadline",
        "12h",
        "--budget",
        "7.5",
    )
    asked = server.asked(api.ChangeOptions)[-1].options
    assert (asked.time, asked.sites, asked.notify) == (1200.0, ("a", "b"), ("me",))
    assert asked.deadline == pytest.approx(time.time() + 12 * 3600, abs=300)
    assert asked.budget == 7.5
    assert asked.timeout is not None
    cli("change", "3", "--mem", "8G", "--cpus", "2")
    assert server.asked(api.ChangeOptions)[-1].needs == OwnNeeds(cpus=2, memory=8 << 30)
    assert "--mem" in cli("change", "3", "--mem", "auto").err
    assert "nothing to change" in cli("change", "3").err
    assert "--max-fails" in cli("change", "3", "--max-fails", "0%").err


def test_it_asks_and_forgets(cli: Cli, serve: Serve) -> None:
    server = serve(
        {api.GetBags: api.Bags([bag_view(3), bag_view(4)]), api.Forget: lambda question: len(question.bags)}
    )
    refused = cli("forget", "3-4", input=b"n\n")
    assert refused.code != 0
    assert "forget 2 bags (3 to 4) for good?" in refused.err
    assert server.asked(api.Forget) == []
    assert cli("forget", "3-4", input=b"y\n").out == "2 bags forgotten\n"
    assert cli("forget", "3-4", "--yes", "--json").value == {"bags": [3, 4]}
    assert server.asked(api.Forget) == [api.Forget([3, 4])] * 2


def test_earlier_bags_are_counted(cli: Cli, serve: Serve) -> None:
    serve({api.GetBags: api.Bags([bag_view(9)], None, 8), api.GetPilots: []})
    told = cli("status")
    assert "8 earlier bags: adaptor status all" in told.out


@pytest.mark.parametrize(
    ("command", "question", "words", "nothing"),
    [
        ("cancel", api.Cancel, "2 tasks cancelled", "no unfinished task to cancel"),
        ("retry", api.Retry, "2 tasks put back into the queue", "no task has failed or was cancelled"),
    ],
)
def test_cancel_and_retry(
    cli: Cli, serve: Serve, command: str, question: type, words: str, nothing: str
) -> None:
    server = serve({api.GetBags: api.Bags([bag_view(3)]), question: 2})
    assert cli(command, "3").out == f"bag 3: {words}\n"
    server.answers[api.GetBags] = api.Bags([bag_view(3), bag_view(5)])
    assert cli(command, "3-9", "--json").value == {"bags": [3, 5], "tasks": 2}
    assert server.asked(question)[-1].bags == [3, 5]
    server.answers[question] = 0
    assert cli(command, "3-9").out == f"2 bags: {nothing}\n"


def test_a_wrong_selector_starts_no_daemon(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "start", lambda *_, **__: pytest.fail("a daemon was started"))
    outcome = cli("cancel", "9")
    assert outcome.code == 2
    assert "there is no bag 9" in outcome.err


def test_retry_with_other_needs(cli: Cli, serve: Serve) -> None:
    server = serve({api.GetBags: api.Bags([bag_view(3)]), api.Retry: 2})
    cli("retry", "3", "--task", "1,4-5", "--mem", "8G", "--gpus", "a100:2", "--time", "2h", "--cpus", "4")
    cli("retry", "3", "--gpus", "0", "--nodes", "2")
    cli("retry", "3")
    first, second, third = server.asked(api.Retry)
    wanted = OwnNeeds(cpus=4, memory=8 << 30, gpus=2.0, gpu_type="a100", time=7200.0)
    assert (first.tasks, first.needs) == ([1, 4, 5], wanted)
    assert second.needs == OwnNeeds(gpus=0.0, nodes=2)
    assert third.needs is None
    outcome = cli("retry", "3", "--mem", "lots")
    assert outcome.code == 2
    assert "--mem" in outcome.err


def test_retry_takes_what_change_takes(cli: Cli, serve: Serve) -> None:
    """The time is of the tasks that run again, the other options are the bag's."""
    server = serve({api.GetBags: api.Bags([bag_view(3)]), api.Retry: 2})
    cli("retry", "3", "--timeout", "20s", "--retries", "1", "--signal", "USR1@60", "--time", "10s")
    (asked,) = server.asked(api.Retry)
    signal = EarlySignal("SIGUSR1", 60.0)
    assert asked.options == api.OptionChanges(timeout=TimeLimit(seconds=20.0), retries=1, signal=signal)
    assert asked.needs == OwnNeeds(time=10.0)
    of_change, of_retry = ({option.opts[0] for option in command.params} for command in (change, retry))
    assert of_change < of_retry


@pytest.mark.parametrize("command", ["cancel", "retry", "results"])
def test_a_task_that_the_bag_does_not_have_is_an_error(cli: Cli, serve: Serve, command: str) -> None:
    server = serve({api.GetBags: api.Bags([bag_view(3, tasks=10)])})
    outcome = cli(command, "3", "--task", "2,10-12")
    assert (outcome.code, outcome.err) == (2, "adaptor: --task: bag 3 has no task 10; its tasks are 0 to 9\n")
    assert not {*map(type, server.questions)} & {api.Cancel, api.Retry}
    server.answers[api.GetBags] = api.Bags([bag_view(3, tasks=0)])
    assert "bag 3 has no task 2; it has no tasks" in cli(command, "3", "--task", "2").err
    server.answers[api.GetBags] = api.Bags([bag_view(3), bag_view(4)])
    assert "none of these bags has a task 10" in cli(command, "3-4", "--task", "10").err
