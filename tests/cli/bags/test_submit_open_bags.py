"""`submit --open` and `append`: what reaches the daemon, and what is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor import api
from adaptor.api import TaskInput
from tests.cli.fake_control import running_bag
from tests.cli.invoking import Cli, Serve


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more.bag").write_text("echo a\necho b\n")
    return tmp_path


def test_a_bag_opens_with_or_without_tasks(cli: Cli, serve: Serve) -> None:
    server = serve({api.Publish: api.Submitted(7)})
    assert (
        cli("submit", "--open", "--name", "sweep", "--cpus", "2", "--no-env").out == "bag 7: open, 0 tasks\n"
    )
    assert cli("submit", "--open", "more.bag", "--json").value == {"bag": 7, "tasks": 2}
    empty, filled = server.submitted()
    assert (empty.bag.spec.name, empty.bag.spec.cpus, empty.bag.tasks) == ("sweep", 2, [])
    assert (filled.bag.spec.name, filled.bag.tasks[1]) == ("more", TaskInput("echo b"))
    assert empty.open
    assert len({empty.key, filled.key, ""}) == 3


def test_tasks_are_appended(cli: Cli, serve: Serve) -> None:
    server = serve(
        {
            api.GetBags: api.Bags([running_bag(7, open=True)]),
            api.Add: lambda question: api.Added(5, len(question.tasks)),
        }
    )
    assert cli("append", "last", "more.bag").out == "bag 7: 2 tasks appended (tasks 5 to 6)\n"
    assert cli("append", "7", "-", input=b"echo c\n").out == "bag 7: 1 task appended (task 5)\n"
    assert cli("append", "7", "--template", "x {n}", "-P", "n=1:3", "--json").value["tasks"] == [5, 6, 7]
    assert [task.command for task in server.asked(api.Add)[0].tasks] == ["echo a", "echo b"]


def test_lines_are_read_as_what_runs_those_of_the_bag(cli: Cli, serve: Serve, here: Path) -> None:
    (here / "more.bag").write_text("for each in range(3): print(each)\n")
    for shell, code in (("", 2), ("bash", 2), ("python3", 0)):
        serve({api.GetBags: api.Bags([running_bag(7, open=True, shell=shell)]), api.Add: api.Added(5, 1)})
        assert cli("append", "7", "more.bag").code == code


def test_tasks_that_can_never_run_are_named(cli: Cli, serve: Serve) -> None:
    serve(
        {
            api.GetBags: api.Bags([running_bag(7, open=True)]),
            api.Add: api.Added(5, 2, 1, ["task 6: no node can run it"]),
            api.Publish: api.Submitted(7, refused=1, reasons=["line 1: no node can run it"]),
        }
    )
    outcome = cli("append", "last", "more.bag")
    assert outcome.out == "bag 7: 2 tasks appended (tasks 5 to 6)\n"
    assert outcome.err.splitlines()[1:] == ["  task 6: no node can run it"]
    assert cli("append", "last", "more.bag", "--json").err == outcome.err
    assert cli("submit", "--open", "more.bag").err.splitlines()[1:] == ["  line 1: no node can run it"]


def test_options_of_a_bag_do_not_come_with_more_tasks(cli: Cli, serve: Serve, here: Path) -> None:
    serve({api.GetBags: api.Bags([running_bag(7)])})
    (here / "more.bag").write_text("#ADAPTOR cpus=2\necho a\n")
    outcome = cli("append", "7", "more.bag")
    assert outcome.code == 2
    assert "more.bag: #ADAPTOR sets options of a bag" in outcome.err


def test_bags_are_closed(cli: Cli, serve: Serve) -> None:
    server = serve(
        {api.GetBags: api.Bags([running_bag(7, open=True)]), api.Add: api.Added(5, 2), api.Close: [7]}
    )
    assert cli("append", "7", "--close").lines == ["bag 7: closed"]
    assert cli("append", "7", "more.bag", "--close").lines[1] == "bag 7: closed"
    assert cli("append", "7", "--close", "--json").value == {"bag": 7, "tasks": [], "closed": True}
    server.answers[api.Close] = []
    assert cli("append", "7", "--close").lines == ["bag 7: was closed already"]
    assert "no tasks; give a FILE" in cli("append", "7").err


def test_some_tasks_are_cancelled_or_tried_again(cli: Cli, serve: Serve) -> None:
    server = serve({api.GetBags: api.Bags([running_bag(7)]), api.Cancel: 3, api.Retry: 1})
    assert cli("cancel", "7", "--task", "1-2,9").out == "bag 7: 3 tasks cancelled\n"
    assert cli("retry", "7", "--task", "4").code == 0
    assert server.asked(api.Cancel) == [api.Cancel([7], [1, 2, 9])]
    assert server.asked(api.Retry) == [api.Retry([7], [4])]
    assert "more than 10,000,000 tasks" in cli("cancel", "7", "--task", "0-99999999").err
