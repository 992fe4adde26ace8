"""`results`: what became of each task, page by page, and what the tasks printed."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adaptor import api
from adaptor.api import FailureView, TaskSums
from adaptor.cli.sentences import summary
from adaptor.outputs.finding import Outputs
from adaptor.outputs.packing import Packer
from tests.cli.fake_control import Answers, bag_view, task_view
from tests.cli.invoking import Cli, Serve


def failures(*several: FailureView, others: int = 0) -> api.TaskSums:
    return TaskSums(bag=7, runtimes=[], progress=[], failures=list(several), other_failures=others)


def failure(count: int, task: int, **changes: Any) -> FailureView:
    fields: dict[str, Any] = {"exit_code": 1, "signal": None, "error": None, "attempt": 1, "stderr": None}
    return FailureView(count=count, task=task, ended=None, node=None, **(fields | changes))


def test_results(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "0.out").write_text("done")
    (tmp_path / "1.2.err").write_text("one\ntwo\nthree\nMemoryError\n")
    tasks = [
        task_view(0),
        task_view(1, attempt=2, state="failed", exit_code=None, signal=9, name="big"),
        task_view(2, attempt=0, state="waiting", exit_code=None, wall=None, cpu=None, node=None),
        task_view(3, state="failed", exit_code=None, error="no such folder: /x"),
    ]
    bag = bag_view(failed=2, done=1, waiting=1, tasks=4, output=str(tmp_path))
    sums = failures(failure(1, 1, exit_code=None, signal=9, attempt=2), failure(1200, 3, exit_code=127))
    server = serve({api.GetBags: api.Bags([bag]), api.GetTasks: tasks, api.GetTaskSums: sums})
    lines = cli("results").lines
    assert lines[0] == (f"bag 7 render: 1 of 4 done, 2 failed, 1 waiting, mean 2.5s; output in {tmp_path}")
    assert lines[1] == "  1 × killed (SIGKILL, often out of memory), such as task 1"
    assert lines[2:5] == ["      two", "      three", "      MemoryError"]
    assert lines[5] == "  1,200 × command not found (exit 127), such as task 3"
    first, second, _, last = lines[7:]
    assert "exit 0" in first
    assert first.endswith(" 0.out   -")
    assert "17M" in first
    assert second.endswith(" 1.2.err")
    assert "no such folder: /x" in last
    assert len(cli("results", "--task", "1-2,3").lines) == 1 + 3, "only these tasks"
    values = cli("results", "--json").value
    assert [task["task"] for task in values] == [0, 1, 2, 3]
    assert [task["stdout"] for task in values] == [f"{tmp_path}/0.out", None, None, None]
    assert server.asked(api.GetTasks)[-1] == api.GetTasks(7, [], -1, 2_000)
    cli("results", "--failed")
    assert server.asked(api.GetTasks)[-1].states == ["failed", "cancelled"]


def test_a_task_that_waits_at_its_worker_is_not_among_the_running(cli: Cli, serve: Serve) -> None:
    """The journal does not know it from one that runs: so both are asked for, and told apart here."""
    tasks = [task_view(0, state="running"), task_view(1, state="waiting"), task_view(2, state="running")]
    server = serve({api.GetBags: api.Bags([bag_view()]), api.GetTasks: tasks})
    assert [task["task"] for task in cli("results", "--json", "--state", "running").value] == [0, 2]
    assert server.asked(api.GetTasks)[-1].states == ["running", "waiting"]
    assert [task["task"] for task in cli("results", "--json", "--state", "waiting").value] == [1]


def test_a_list_is_short_unless_all_tasks_are_asked_for(cli: Cli, serve: Serve) -> None:
    tasks = [task_view(number) for number in range(30)]
    serve({api.GetBags: api.Bags([bag_view(tasks=30)]), api.GetTasks: tasks})
    lines = cli("results").lines
    assert len(lines) == 2 + 20 + 1
    assert lines[-1] == "10 more tasks: --all lists them, --failed those without a result"
    assert len(cli("results", "--all").lines) == 2 + 30


def test_csv_holds_what_json_holds(cli: Cli, serve: Serve) -> None:
    tasks = [task_view(0, command='echo "a, b"'), task_view(1, error="two\nlines")]
    serve({api.GetBags: api.Bags([bag_view()]), api.GetTasks: tasks})
    values = cli("results", "--json").value
    rows = list(csv.DictReader(io.StringIO(cli("results", "--csv").out)))
    told = [{key: "" if value is None else str(value) for key, value in each.items()} for each in values]
    assert rows == told


@pytest.mark.parametrize("forms", [("--json", "--stdout"), ("--csv", "--json"), ("--csv", "--follow")])
def test_one_form_at_a_time(cli: Cli, forms: tuple[str, str]) -> None:
    outcome = cli("results", *forms)
    assert outcome.code == 2
    assert f"{forms[0]} and {forms[1]} are mutually exclusive" in outcome.err or (
        f"{forms[1]} and {forms[0]} are mutually exclusive" in outcome.err
    )


def test_an_output_is_followed_to_its_end(
    cli: Cli, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the loss of an attempt, and into the archive that the output ends up in."""
    monkeypatch.setattr("adaptor.cli.bags.task_output.PAUSE", 0.0)
    folder = os.open(tmp_path, os.O_RDONLY)
    looks = 0

    def look(_question: api.GetTasks) -> list[api.TaskView]:
        nonlocal looks
        looks += 1
        match looks:
            case 1:
                return [task_view(5, attempt=0, state="waiting")]
            case 2:
                (tmp_path / "5.out").write_text("lost\n")
                return [task_view(5, attempt=1, state="running")]
            case 3:
                (tmp_path / "5.2.out").write_text("first\n")
            case 4:
                (tmp_path / "5.2.out").write_text("first\nsecond\n")
                Packer("n1", 1).pack(["5.2.out"], folder)
                return [task_view(5, attempt=2, state="done")]
        return [task_view(5, attempt=2, state="running")]

    serve({api.GetBags: api.Bags([bag_view(output=str(tmp_path))]), api.GetTasks: look})
    outcome = cli("results", "--task", "5", "--follow")
    os.close(folder)
    assert outcome.out == "lost\nfirst\nsecond\n"
    assert outcome.err == "adaptor: task 5: attempt 2\n"
    assert "--follow needs the number of one task" in cli("results", "--follow").err


def test_results_come_page_by_page(cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptor.client.reading.PAGE", 4)

    def page(question: api.GetTasks) -> list[api.TaskView]:
        last = min(question.after + 1 + question.limit, 10)
        return [task_view(task) for task in range(question.after + 1, last)]

    server = serve({api.GetBags: api.Bags([bag_view()]), api.GetTasks: page})
    assert [task["task"] for task in cli("results", "--json").value] == list(range(10))
    assert [question.after for question in server.asked(api.GetTasks)] == [-1, 3, 7]


def test_tasks_are_asked_for_from_the_first_number_on_and_not_beyond_the_last(cli: Cli, serve: Serve) -> None:
    def page(question: api.GetTasks) -> list[api.TaskView]:
        first = question.after + 1
        return [task_view(task) for task in range(first, min(first + question.limit, 1_000_000))]

    server = serve({api.GetBags: api.Bags([bag_view(tasks=1_000_000)]), api.GetTasks: page})
    found = cli("results", "--task", "900000-900001,900003", "--json").value
    assert [task["task"] for task in found] == [900_000, 900_001, 900_003]
    (question,) = server.asked(api.GetTasks)
    assert (question.after, question.limit) == (899_999, 4)


@pytest.mark.parametrize(("free", "says"), [(0, True), (15, True), (16, False)])
def test_a_full_disk_is_named_where_tasks_have_failed(
    cli: Cli, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, says: bool
) -> None:
    (tmp_path / "3.err").write_text("")
    bag = bag_view(output=str(tmp_path), failed=1)
    tasks = [task_view(3, state="failed", exit_code=1)]
    serve({api.GetBags: api.Bags([bag]), api.GetTaskSums: failures(failure(1, 3)), api.GetTasks: tasks})
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_bavail=free, f_frsize=4096))
    assert (f"the disk of {tmp_path} is full" in cli("results").out) is says


def test_a_heading_begins_its_line_whatever_the_output_before_ends_with(
    cli: Cli, serve: Serve, tmp_path: Path
) -> None:
    for number, text in enumerate([b"no end", b"an end\n", b"", b"again no end"]):
        (tmp_path / f"{number}.out").write_bytes(text)
    bags = api.Bags([bag_view(output=str(tmp_path))])
    server = serve({api.GetBags: bags, api.GetTasks: [task_view(task) for task in range(4)]})
    headings = [f"==> task {number} <==" for number in range(4)]
    out = cli("results", "--stdout").out
    assert out == f"{headings[0]}\nno end\n{headings[1]}\nan end\n{headings[2]}\n{headings[3]}\nagain no end"
    server.answers[api.GetTasks] = [task_view(0)]
    assert cli("results", "--stdout").out == "no end", "the output of one task is as it is"


def test_outputs_in_task_order(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "0.out").write_bytes(b"first\n\xff\n")
    (tmp_path / "0.err").write_bytes(b"first\n\xff\n")
    (tmp_path / "2.out").symlink_to("nowhere")
    tasks = [task_view(0), task_view(1), task_view(2)]
    bags = api.Bags([bag_view(output=str(tmp_path))])
    answers: Answers = {api.GetBags: bags, api.GetTasks: tasks}
    server = serve(answers)
    outcome = cli("results", "--stdout")
    assert outcome.out.encode(errors="surrogateescape").startswith(b"==> task 0 <==\nfirst\n")
    assert outcome.lines[-2:] == ["==> task 1 <==", "==> task 2 <=="]
    assert "2.out: it is a link" in outcome.err
    assert outcome.code == 0
    server.answers[api.GetTasks] = [task_view(0)]
    assert cli("results", "--stderr").lines[0] == "first"


def gone(cli: Cli, serve: Serve, output: Path, tasks: list[api.TaskView], **changes: Any) -> str:
    """What `results --stdout` says on stderr."""
    serve({api.GetBags: api.Bags([bag_view(output=str(output), **changes)]), api.GetTasks: tasks})
    outcome = cli("results", "--stdout")
    assert outcome.code == 0
    return outcome.err


def test_outputs_in_a_folder_that_was_removed_are_gone(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    waiting = task_view(4, state="waiting", attempt=0)
    tasks = [task_view(0), task_view(1), task_view(3, state="failed"), waiting]
    told = gone(cli, serve, folder, tasks)
    assert told == f"adaptor: bag 7: what 3 tasks (0-1, 3) may have written is gone: no folder {folder}\n"
    assert gone(cli, serve, folder, tasks, output_files="none") == ""


def test_outputs_before_a_folder_was_made_again_are_gone(
    cli: Cli, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that ended later have written nothing."""
    monkeypatch.setattr(Outputs, "made_at", lambda _outputs: 1_700_000_010.0)
    (tmp_path / "0.out").write_text("early\n")
    tasks = [task_view(0), *(task_view(task, ended=1_700_000_000.0 + task) for task in (5, 6, 9, 12))]
    told = gone(cli, serve, tmp_path, tasks)
    assert told.startswith("adaptor: bag 7: what 3 tasks (5-6, 9) may have written is gone: ")
    assert f"{tmp_path} was made again at " in told


def test_a_file_that_a_script_names_and_that_is_not_there_is_gone(
    cli: Cli, serve: Serve, tmp_path: Path
) -> None:
    tasks = [task_view(0, stdout=str(tmp_path / "slurm-1.out")), task_view(1, stdout=os.devnull)]
    told = gone(cli, serve, tmp_path, tasks)
    assert told == "adaptor: bag 7: the stdout of 1 task (0) is gone: no such file\n"


ESCAPE = "\x1b[2J\x1b]0;owned\x07"


def test_no_text_of_a_user_or_a_cluster_moves_the_terminals_cursor(
    cli: Cli, serve: Serve, tmp_path: Path
) -> None:
    folder = f"{tmp_path}/{ESCAPE.replace('/', '')}"
    Path(folder).mkdir()
    Path(folder, "0.out").symlink_to(ESCAPE)
    tasks = [
        task_view(0, name=ESCAPE, node=ESCAPE),
        task_view(1, state="failed", exit_code=None, error=f"{folder}: no such folder"),
    ]
    bag = bag_view(name=ESCAPE, output=folder, state="done", done=bag_view().tasks)
    serve({api.GetBags: api.Bags([bag]), api.GetTasks: tasks})
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
    tasks = [task_view(0)]
    bag = bag_view(output=str(tmp_path))
    serve({api.GetBags: api.Bags([bag]), api.GetTasks: tasks})
    assert f"task 0: {tmp_path}/0.out: it is no plain file" in cli("results", "--stdout").err


def test_gpu_memory_has_a_column_where_a_task_has_any(cli: Cli, serve: Serve) -> None:
    tasks = [task_view(0), task_view(1, peak_gpu_memory=3 * 2**30)]
    serve({api.GetBags: api.Bags([bag_view()]), api.GetTasks: tasks})
    _, titles, without, having = cli("results").lines
    assert "gpu memory" in titles
    assert " 3G " in having
    assert " 3G " not in without
    serve({api.GetBags: api.Bags([bag_view()]), api.GetTasks: tasks[:1]})
    assert "gpu" not in cli("results").lines[1]


@pytest.mark.parametrize(
    ("wall", "peak", "shown"),
    [(0.01, 22 << 20, "<22M"), (0.5, 100 << 20, "100M"), (5.0, 22 << 20, "22M"), (None, None, "-")],
)
def test_memory_of_a_task_too_short_to_be_sampled_is_a_bound(
    cli: Cli, serve: Serve, wall: float | None, peak: int | None, shown: str
) -> None:
    serve({api.GetBags: api.Bags([bag_view()]), api.GetTasks: [task_view(0, wall=wall, peak_memory=peak)]})
    _, titles, row = cli("results").lines
    at = titles.index("memory")
    assert row[: at + len("memory")].split()[-1] == shown


def test_replicas_are_told_from_tries(cli: Cli, serve: Serve) -> None:
    tasks = [task_view(0, attempts=2, replicas=1), task_view(1, attempts=2, retries=1)]
    serve({api.GetBags: api.Bags([bag_view()]), api.GetTasks: tasks})
    _, _, replicated, again = cli("results").lines
    assert "1 (+1 replica)" in replicated
    assert "replica" not in again
