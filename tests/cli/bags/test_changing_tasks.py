"""`cancel` and `retry`: which bags they mean, and what they say."""

from __future__ import annotations

import pytest

from adaptor import api
from adaptor.daemon import process
from adaptor.resources import OwnNeeds
from tests.cli.fake_control import bag_view
from tests.cli.invoking import Cli, Serve


@pytest.mark.parametrize(
    ("command", "question", "words"),
    [
        ("cancel", api.Cancel, "2 tasks cancelled"),
        ("retry", api.Retry, "2 tasks put back into the queue"),
    ],
)
def test_cancel_and_retry(cli: Cli, serve: Serve, command: str, question: type, words: str) -> None:
    server = serve({api.GetBags: api.Bags([bag_view(3)]), question: 2})
    assert cli(command, "3").out == f"bag 3: {words}\n"
    server.answers[api.GetBags] = api.Bags([bag_view(3), bag_view(5)])
    assert cli(command, "3-9", "--json").value == {"bags": [3, 5], "tasks": 2}
    assert server.asked(question)[-1].bags == [3, 5]


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
