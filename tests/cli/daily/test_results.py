"""`results`: what became of each task, page by page, and what the tasks printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adaptor.cli.progress import summary
from adaptor.protocol import control
from tests.cli.fake_control import Answers, bag_view, task_view
from tests.cli.invoking import Cli, Serve


def test_results(cli: Cli, serve: Serve) -> None:
    tasks = [
        task_view(0, stdout="/out/adaptor-7/0.out"),
        task_view(1, state="failed", exit_code=None, signal=9, name="big", stdout="/elsewhere/1.out"),
        task_view(2, state="waiting", exit_code=None, wall=None, cpu=None, peak_memory=None, node=None),
        task_view(3, state="failed", exit_code=None, error="no such folder: /x"),
    ]
    server = serve({control.GetBags: control.Bags([bag_view()]), control.GetTasks: control.Tasks(tasks)})
    outcome = cli("results")
    assert outcome.lines[0] == "bag 7 render: output in /out/adaptor-7"
    assert "exit 0" in outcome.lines[2]
    assert " 0.out " in outcome.lines[2]
    assert "17M" in outcome.lines[2]
    assert "killed (SIGKILL, often out of memory)" in outcome.lines[3]
    assert "/elsewhere/1.out" in outcome.lines[3]
    assert "no such folder: /x" in outcome.lines[5]
    assert len(cli("results", "--task", "1-2,3").lines) == 5
    assert [task["task"] for task in cli("results", "--json").value] == [0, 1, 2, 3]
    assert server.asked(control.GetTasks)[-1] == control.GetTasks(7, [], -1, 10_000)
    cli("results", "--failed", "--state", "waiting")
    assert server.asked(control.GetTasks)[-1].states == ["waiting", "failed", "cancelled"]


def test_results_come_page_by_page(cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptor.cli.reader._PAGE", 4)

    def page(question: control.GetTasks) -> control.Tasks:
        last = min(question.after + 1 + question.limit, 10)
        return control.Tasks([task_view(task) for task in range(question.after + 1, last)])

    server = serve({control.GetBags: control.Bags([bag_view()]), control.GetTasks: page})
    assert [task["task"] for task in cli("results", "--json").value] == list(range(10))
    assert [question.after for question in server.asked(control.GetTasks)] == [-1, 3, 7]


def test_outputs_in_task_order(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "0.out").write_bytes(b"first\n\xff\n")
    tasks = [
        task_view(0, stdout=str(tmp_path / "0.out")),
        task_view(1),
        task_view(2, stdout=str(tmp_path / "gone.out")),
    ]
    answers: Answers = {control.GetBags: control.Bags([bag_view()]), control.GetTasks: control.Tasks(tasks)}
    server = serve(answers)
    outcome = cli("results", "--stdout")
    assert outcome.out.encode(errors="surrogateescape").startswith(b"==> task 0 <==\nfirst\n")
    assert outcome.lines[-2:] == ["==> task 1 <==", "==> task 2 <=="]
    assert "gone.out: No such file" in outcome.err
    assert outcome.code == 0
    server.answers[control.GetTasks] = control.Tasks([task_view(0, stderr=str(tmp_path / "0.out"))])
    assert cli("results", "--stderr").lines[0] == "first"


ESCAPE = "\x1b[2J\x1b]0;owned\x07"


def test_no_text_of_a_user_or_a_cluster_moves_the_terminals_cursor(cli: Cli, serve: Serve) -> None:
    folder = f"/out/{ESCAPE}"
    tasks = [
        task_view(0, stdout=f"{folder}/0.out", name=ESCAPE, node=ESCAPE),
        task_view(1, state="failed", exit_code=None, error=f"{folder}: no such folder"),
    ]
    bag = bag_view(name=ESCAPE, output=folder, state="done", done=bag_view().tasks)
    serve({control.GetBags: control.Bags([bag]), control.GetTasks: control.Tasks(tasks)})
    outcome = cli("results")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert "·[2J" in outcome.lines[0]
    assert "\x1b" not in summary(bag)
    missing = cli("results", "--stdout")
    assert "\x1b" not in missing.out + missing.err


def test_a_fifo_in_place_of_an_output_is_named_and_not_waited_for(
    cli: Cli, serve: Serve, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "0.out")
    tasks = [task_view(0, stdout=str(tmp_path / "0.out"))]
    serve({control.GetBags: control.Bags([bag_view()]), control.GetTasks: control.Tasks(tasks)})
    assert f"task 0: {tmp_path}/0.out: no plain file" in cli("results", "--stdout").err
