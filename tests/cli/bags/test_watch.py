"""The live display on a terminal of ordinary width."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from adaptor import api
from adaptor.cli.bags import watch
from adaptor.cli.bags.task_output import print_in_order
from adaptor.cli.bags.watch import display
from adaptor.cli.follow import Overview
from adaptor.guard_rails import MostFails
from adaptor.model import Estimate
from tests.cli.fake_control import FakeControl, pilot_view, running_bag, task_view
from tests.cli.invoking import Serve

AHEAD = api.ForecastView(cost=None, end=Estimate(1030.0, 1060.0, 1090.0), deadline=None)
REASON = "the next free slot for 8 processors starts at 14:05"


def shown(capsys: pytest.CaptureFixture[str], *snapshots: Overview) -> list[str]:
    list(display(snapshots, lambda bag: REASON))
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("columns", ["112", "80", "50", "40"])
def test_a_forecast_leaves_room_for_the_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = shown(capsys, Overview(1000.0, [running_bag(8, forecast=AHEAD)], []))
    assert any("━━━━" in line and "%" in line for line in lines)
    assert any(line.startswith("bag 8: done ") for line in lines)


@pytest.mark.parametrize(("term", "redraws"), [("xterm", True), ("dumb", False)])
def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch, term: str, redraws: bool) -> None:
    chosen: list[str] = []

    def show(name: str) -> Callable[[Iterable[Overview]], Iterator[Overview]]:
        def shown(snapshots: Iterable[Overview], err: bool = False) -> Iterator[Overview]:
            chosen.append(name)
            yield from snapshots

        return shown

    ended = Overview(1000.0, [running_bag(8, state="done", ended=1000.0, running=0)], [])
    monkeypatch.setattr(watch, "follow", lambda *_: iter([ended]))
    monkeypatch.setattr(watch, "display", show("bar"))
    monkeypatch.setattr(watch, "_narrated", show("lines"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    assert watch.watch_bags([ended], as_json=False) == 0
    assert chosen == ["bar" if redraws else "lines"]


def test_a_bag_of_which_nothing_runs_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    waits = Overview(1000.0, [running_bag(8, running=0)], [])
    assert any(line.startswith("bag 8 waits: the next free slot") for line in shown(capsys, waits))
    runs = Overview(1000.0, [running_bag(8, running=3)], [])
    assert not any("waits" in line for line in shown(capsys, runs))


def test_the_same_reason_of_several_bags_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = [running_bag(number, running=0) for number in range(7, 10)]
    reasons = [line for line in shown(capsys, Overview(1000.0, waiting, [])) if REASON in line]
    assert [line.split(": ")[0] for line in reasons] == ["bags 7-9 wait"]


def test_a_bag_that_runs_after_another_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    after = running_bag(8, running=0, waiting=0, blocked=6, awaits=[5])
    told = shown(capsys, Overview(1000.0, [after], []))
    assert "bag 8 waits for bag 5" in told
    assert not any(REASON in line for line in told)
    assert watch.Narrator().lines(Overview(1000.0, [after], []))[-1].endswith("bag 8 waits for bag 5")


@pytest.mark.parametrize(("columns", "lines"), [("80", 24), ("40", 24), ("120", 8)])
def test_bags_that_go_on_are_seen_however_many_have_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str, lines: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", str(lines))
    ended = [running_bag(number, state="done", ended=1000.0, running=0) for number in range(1, 31)]
    going = running_bag(31, forecast=AHEAD)
    told = shown(capsys, Overview(1000.0, [*ended, going], []))
    assert len(told) < lines
    assert told[0] == "30 bags ended"
    assert any(line.startswith("bag 31") and "%" in line for line in told)
    assert any(line.startswith("bag 31: done ") for line in told)


def test_as_many_bags_are_seen_as_the_terminal_has_lines_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("LINES", "24")
    told = shown(capsys, Overview(1000.0, [running_bag(number, running=3) for number in range(1, 41)], []))
    assert len(told) < 24
    assert told[-2] == "19 more bags, 19 of them run: adaptor status"
    assert told[-1] == "no pilots"


@pytest.mark.parametrize("columns", ["80", "120"])
def test_of_hundreds_of_bags_those_that_run_have_their_bars(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", "30")
    waiting = [running_bag(number, running=0, forecast=AHEAD) for number in range(1, 161)]
    going = [running_bag(number, running=2, forecast=AHEAD) for number in range(161, 165)]
    ended = [
        running_bag(
            number, state="failed" if number < 203 else "done", ended=1000.0, running=0, failed=failed
        )
        for number, failed in zip(range(200, 230), [1] * 3 + [0] * 27, strict=True)
    ]
    told = shown(capsys, Overview(1000.0, [*waiting, *going, *ended], []))
    assert len(told) < 30
    assert told[0] == "30 bags ended, 3 with failures"
    bars = [line for line in told if "━" in line or "─" in line]
    assert [line.split()[1] for line in bars[:4]] == ["161", "162", "163", "164"]
    assert any("more bags, none of them runs: adaptor status" in line for line in told)
    assert told[-1].startswith("bags 1-3 wait: ")


def test_a_paused_bag_has_no_end_and_an_ended_one_no_pilots(capsys: pytest.CaptureFixture[str]) -> None:
    pilots = [pilot_view(1, state="running")]
    paused = running_bag(8, forecast=AHEAD, paused="paused by you", running=1)
    assert not any(
        "done " in line and line.startswith("bag 8:")
        for line in shown(capsys, Overview(1000.0, [paused], pilots))
    )
    ended = running_bag(8, state="done", ended=1000.0, running=0)
    assert not any("pilot" in line for line in shown(capsys, Overview(1000.0, [ended], pilots)))


PAUSED = "bags 8-9 are paused: 0.05 credits are left (site here, per day)"


def test_the_reason_of_a_pause_is_shown_once_and_kept_by_lines(capsys: pytest.CaptureFixture[str]) -> None:
    bags = [running_bag(id, forecast=AHEAD, paused=PAUSED, running=0) for id in (8, 9)]
    assert shown(capsys, Overview(1000.0, bags, [])).count(PAUSED) == 1
    narrator = watch.Narrator()
    lines = narrator.lines(Overview(1000.0, bags[:1], []))
    assert lines[-1].endswith(PAUSED)
    assert not any(", done " in line for line in lines)
    assert narrator.lines(Overview(1001.0, bags[:1], [])) == []


def test_the_output_of_a_task_is_printed_when_all_before_it_have_ended(
    serve: Serve, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for task in range(3):
        (tmp_path / f"{task}.out").write_text(f"of {task}\nlast")
    states = ["running", "done", "waiting"]

    def tasks(question: api.GetTasks) -> list[api.TaskView]:
        found = [task_view(task, state=state) for task, state in enumerate(states)]
        return [task for task in found if task.task > question.after][: question.limit]

    serve({api.GetTasks: tasks})
    bag = running_bag(7, output=str(tmp_path))

    def snapshots() -> Iterator[Overview]:
        yield Overview(1000.0, [bag], [])
        assert capfdbinary.readouterr().out == b"", "the first one runs"
        states[0] = "failed"
        yield Overview(1001.0, [bag], [])
        assert capfdbinary.readouterr().out == b"0\tof 0\n0\tlast\n1\tof 1\n1\tlast\n"
        states[2] = "done"
        yield Overview(1002.0, [bag], [])

    assert [snapshot.time for snapshot in print_in_order(snapshots(), 7, tag=True)] == [1000, 1001, 1002]
    assert capfdbinary.readouterr().out == b"2\tof 2\n2\tlast\n", "each once"


@pytest.mark.parametrize(("failed", "cancelled"), [(1, 0), (2, 1)])
def test_a_bag_is_cancelled_at_its_failures(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, failed: int, cancelled: int
) -> None:
    daemon: FakeControl = serve({api.Cancel: 4})

    def follow(_: object) -> Iterator[Overview]:
        yield Overview(1000.0, [running_bag(7, failed=failed)], [])
        yield Overview(1001.0, [running_bag(7, state="failed", ended=1001.0, running=0)], [])

    monkeypatch.setattr(watch, "follow", follow)
    assert [snapshot.ended for snapshot in watch.until_failed(7, MostFails(tasks=2))][-1]
    assert [asked.bags for asked in daemon.asked(api.Cancel)] == [[7]] * cancelled
