"""What is printed of bags, tasks, pilots, decisions, sites and the daemon; as text and as JSON."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from adaptor.cli import daemon_process
from adaptor.daemon import process
from adaptor.protocol import control
from adaptor.views import BagReport, Explanation, Totals
from tests.cli.fake_control import Answers, bag_view, daemon_view, pilot_view, running_bag, task_view
from tests.cli.invoking import Cli, Serve


def test_status(cli: Cli, serve: Serve) -> None:
    serve(
        {
            control.GetBags: control.Bags([bag_view(), running_bag(8, name="bad\x1b[2Jname", sites=["hpc"])]),
            control.GetPilots: control.Pilots([pilot_view(state="running", note="no worker yet")]),
        }
    )
    outcome = cli("status")
    assert outcome.code == 0
    assert outcome.lines[0].split()[:4] == ["bag", "name", "state", "done"]
    assert outcome.lines[1].split()[:4] == ["7", "render", "done", "10/10"]
    assert "\x1b" not in outcome.lines[2]
    assert outcome.lines[3].endswith("1 pilot: 1 running (6 processors)")
    assert outcome.lines[4] == "pilot 1: no worker yet"


def test_status_as_json(cli: Cli, serve: Serve) -> None:
    serve(
        {
            control.GetBags: control.Bags([bag_view()]),
            control.GetPilots: control.Pilots([pilot_view(predicted_start=None)]),
        }
    )
    value = cli("status", "--json").value
    assert value["bags"][0]["submitted"] == "2023-11-14T22:13:20.000Z"
    assert value["bags"][0]["running"] == 0
    assert value["pilots"][0]["tr"] == 600.0
    assert isinstance(value["pilots"][0]["tr"], float)
    assert value["pilots"][0]["predicted_start"] is None
    assert value["daemon"]["workers"] == 2


def test_status_where_nothing_was_ever_submitted(cli: Cli) -> None:
    outcome = cli("status")
    assert outcome.code == 0
    assert "no bags" in outcome.out
    assert "no daemon is running" in outcome.err
    assert cli("status", "--json").value == {"bags": [], "daemon": None, "pilots": []}
    assert cli("pilot", "list", "--json").value == []
    assert cli("why", "--json").value == []


def test_status_of_a_daemon_that_stalls(cli: Cli, serve: Serve) -> None:
    view = daemon_view()
    stalled = type(view)(**{**{f: getattr(view, f) for f in view.__struct_fields__}, "stalled": "disk full"})
    serve(
        {
            control.GetBags: control.Bags([]),
            control.GetPilots: control.Pilots([]),
            control.GetDaemon: control.Daemon(stalled),
        }
    )
    assert "daemon stalled: disk full" in cli("status").out
    assert "stalled: disk full" in cli("daemon", "status").out


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
    monkeypatch.setattr("adaptor.cli.daily.results._PAGE", 4)

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


def test_why(cli: Cli, serve: Serve) -> None:
    lines = [
        Explanation(time=1_700_000_000.0, site="hpc", subject="pilot 2", kind="issued", text="asks 4 × 10m"),
        Explanation(time=1_700_000_001.0, site="hpc", subject="hpc", kind="withheld", text="3 requests"),
    ]
    server = serve({control.GetWhy: control.Why(lines), control.GetBags: control.Bags([bag_view()])})
    outcome = cli("why", "last", "--limit", "5")
    assert outcome.lines[0].endswith("hpc pilot 2: issued: asks 4 × 10m")
    assert outcome.lines[1].endswith("hpc: withheld: 3 requests")
    assert server.asked(control.GetWhy) == [control.GetWhy(7, None, 5)]
    assert cli("why", "--pilot", "2", "--json").value[0]["time"] == "2023-11-14T22:13:20.000Z"
    server.answers[control.GetBags] = control.Bags([bag_view(), bag_view(8)])
    assert "means 2 bags; name one" in cli("why", "all").err


def test_report_fits_a_terminal_of_120_columns(cli: Cli, serve: Serve) -> None:
    reason = (
        "asks 4 × 12m for 8 of 120 tasks of 6m: " + "the slot free from now gives the best throughput " * 4
    )
    requests = [
        pilot_view(number, site="a-long-site-name", job="1234567890.server", p=1024, tr=359999, reason=reason)
        for number in (1, 1000)
    ]
    requests.append(pilot_view(3, state="node_failed", end_reason="node n3 failed", used=1e7, wasted=1e9))
    totals = Totals(requests=3, paid=4000.0, used=3000.0, wasted=1000.0, turnaround=250.0, first_result=12.0)
    serve(
        {
            control.GetBags: control.Bags([bag_view()]),
            control.GetReport: control.Report(BagReport(bag=bag_view(), requests=requests, totals=totals)),
        }
    )
    outcome = cli("report")
    assert max(map(len, outcome.lines)) <= 120
    assert outcome.out.count("why: ") == 3
    assert "end: node n3 failed" in outcome.out
    assert outcome.lines[-3].endswith("used 50m (75 %), wasted 16m 40s")
    assert outcome.lines[-2].endswith("paid 4,000, used 3,000, wasted 1,000")
    assert outcome.lines[-1] == "first result after 12s, last result after 4m 10s"
    value = cli("report", "7", "--json").value
    assert value["totals"]["turnaround"] == 250.0
    assert value["requests"][0]["reason"] == reason


def test_pilot_list(cli: Cli, serve: Serve) -> None:
    server = serve({control.GetPilots: control.Pilots([pilot_view(state="running", note="slow")])})
    outcome = cli("pilot", "list", "--all")
    assert outcome.lines[1].split()[:4] == ["1", "hpc", "4711", "running"]
    assert outcome.lines[2].strip() == "note: slow"
    assert server.asked(control.GetPilots) == [control.GetPilots(ended=True)]
    server.answers[control.GetPilots] = control.Pilots([])
    assert "no pilots" in cli("pilot", "list").out


@pytest.mark.parametrize(
    ("command", "question", "words"),
    [("cancel", control.Cancel, "2 tasks cancelled"), ("retry", control.Retry, "2 tasks put back")],
)
def test_cancel_and_retry(cli: Cli, serve: Serve, command: str, question: type, words: str) -> None:
    server = serve({control.GetBags: control.Bags([bag_view(3)]), question: control.Changed(2)})
    assert cli(command, "3").out == f"bag 3: {words}\n"
    server.answers[control.GetBags] = control.Bags([bag_view(3), bag_view(5)])
    assert cli(command, "3-9", "--json").value == {"bags": [3, 5], "tasks": 2}
    assert server.asked(question)[-1].bags == [3, 5]


def test_a_wrong_selector_starts_no_daemon(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "start", lambda *_, **__: pytest.fail("a daemon was started"))
    outcome = cli("cancel", "9")
    assert outcome.code == 2
    assert "there is no bag 9" in outcome.err


def test_daemon_status_and_start(cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[bool] = []

    def start(directory: Path, config: str | None, until_idle: bool = False) -> None:
        started.append(until_idle)
        serve({})

    monkeypatch.setattr(process, "start", start)
    assert cli("daemon", "status").code == 1
    outcome = cli("daemon", "start", "--until-idle")
    assert outcome.out.startswith("started: daemon on ")
    assert cli("daemon", "start").out.startswith("runs already: ")
    assert started == [True]
    assert cli("daemon", "start", "--json").value["started"] is False
    assert "version 0.1.0, 2 workers" in cli("daemon", "status").out
    assert cli("daemon", "status", "--json").value["addresses"] == ["tcp://127.0.0.1:5"]


def test_daemon_run_hands_the_exit_code_on(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "run", lambda directory, config, until_idle=False: 1 if until_idle else 0)
    assert cli("daemon", "run").code == 0
    assert cli("daemon", "run", "--until-idle").code == 1


def test_daemon_stop_waits_for_the_process(cli: Cli, serve: Serve) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as victim:

        def stop(_: control.Stop) -> control.Stopping:
            victim.communicate(b"\n")
            return control.Stopping()

        server = serve({control.Stop: stop, control.GetDaemon: control.Daemon(daemon_view(victim.pid))})
        outcome = cli("daemon", "stop", "--pilots")
    assert outcome.out == f"stopped: process {victim.pid}\n"
    assert server.asked(control.Stop) == [control.Stop(pilots=True)]


def test_daemon_stop_where_none_runs(cli: Cli) -> None:
    assert cli("daemon", "stop").out == "no daemon was running\n"
    assert cli("daemon", "stop", "--json").value == {"stopped": None}


def test_a_daemon_that_does_not_end_is_told(cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_process, "STOP_TIMEOUT", 0.1)
    server = serve({control.Stop: control.Stopping()})  # Its process is this one.
    outcome = cli("daemon", "stop")
    assert outcome.code == 1
    assert f"on {socket.gethostname()}) does not end; it still runs" in outcome.err
    elsewhere = daemon_view()
    fields = {field: getattr(elsewhere, field) for field in elsewhere.__struct_fields__}
    server.answers[control.GetDaemon] = control.Daemon(type(elsewhere)(**{**fields, "host": "login2"}))
    assert "on login2) does not end; it still runs" in cli("daemon", "stop").err
