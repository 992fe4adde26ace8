"""Following bags: `watch` and `wait`, over outages, to the right exit code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adaptor import api
from adaptor.api import BagView
from adaptor.cli.bags.watch import Narrator, display
from adaptor.cli.follow import Overview, _endure
from adaptor.cli.sentences import summary
from adaptor.client import asking
from adaptor.client.asking import Outage
from adaptor.config.loading import remember_config
from adaptor.daemon.jobs.record import DaemonJobs, forget_jobs, write_jobs
from adaptor.errors import JournalError, NoDaemonError
from adaptor.journal import queries
from adaptor.protocol.state_directory import state_directory
from tests.cli.fake_control import bag_view, daemon_view, pilot_view, running_bag
from tests.cli.invoking import Cli, Outcome, Serve

NOW = 1_700_000_000.0


def in_turn(*stages: list[BagView]) -> Callable[[api.GetBags], api.Bags]:
    """Answers GetBags by these, one after the other; the last one stays."""
    rest: Iterator[list[BagView]] = iter(stages)
    current: list[list[BagView]] = []

    def answer(_: api.GetBags) -> api.Bags:
        current[:] = [next(rest, current[0] if current else [])]
        return api.Bags(current[0])

    return answer


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch, state: Any) -> Callable[[list[BagView] | None], None]:
    """What the journal says when no daemon runs; None: it is in use."""

    def says(bags: list[BagView] | None) -> None:
        def answer(_directory: object, question: object, _now: float) -> Any:
            if bags is None:
                raise JournalError("in use")
            assert isinstance(question, api.GetBags)
            return api.Bags(bags)

        monkeypatch.setattr(queries, "answer_offline", answer)
        (state / "journal.sqlite").touch()

    return says


def test_a_quiet_watch_is_silent_and_succeeds(cli: Cli, serve: Serve) -> None:
    server = serve({api.GetBags: in_turn([running_bag()], [running_bag()], [bag_view()]), api.GetPilots: []})
    outcome = cli("watch", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert server.asked(api.GetBags)[0] == api.GetBags("last")
    assert server.asked(api.GetBags)[-1] == api.GetBags("7")


@pytest.mark.parametrize("changes", [{"failed": 1, "done": 9}, {"cancelled": 10, "done": 0}])
def test_failed_tasks_are_exit_code_3(cli: Cli, serve: Serve, changes: dict[str, int]) -> None:
    bags = [bag_view(6), bag_view(7, state="failed", **changes)]
    serve({api.GetBags: api.Bags(bags), api.GetPilots: []})
    assert cli("watch", "--quiet", "6,7").code == 3
    outcome = cli("watch", "6,7")
    assert outcome.code == 3
    assert outcome.lines[0].startswith("bag 6 render: 10 tasks done in 4m 10s")
    assert "adaptor results 7 --failed" in outcome.lines[1]
    assert [bag["id"] for bag in cli("watch", "6,7", "--json").value["bags"]] == [6, 7]


def test_a_watch_gives_up_in_time(cli: Cli, serve: Serve) -> None:
    serve({api.GetBags: api.Bags([running_bag()]), api.GetPilots: []})
    assert cli("watch", "--quiet", "--timeout", "0.2").code == 124
    outcome = cli("watch", "--quiet", "--timeout", "0", "--json")
    assert outcome.code == 124
    assert outcome.value["bags"][0]["state"] == "running"
    assert cli("watch", "--timeout", "0").code == 124


def test_a_daemon_that_is_stalled_is_told_once(cli: Cli, serve: Serve) -> None:
    stalled = msgspec.structs.replace(daemon_view(), stalled="the journal is damaged")
    looks = in_turn([running_bag()], [running_bag()], [bag_view()])
    serve({api.GetBags: looks, api.GetPilots: [], api.GetDaemon: stalled})
    assert cli("watch", "--quiet").err == "adaptor: the daemon is stalled: the journal is damaged\n"


def test_nobody_to_wait_for(cli: Cli, serve: Serve) -> None:
    serve({api.GetBags: api.Bags([])})
    outcome = cli("watch")
    assert outcome.code == 2
    assert "there is no bag" in outcome.err


def test_a_daemon_that_leaves_at_the_end_is_no_error(
    cli: Cli, serve: Serve, journal: Callable[[list[BagView] | None], None]
) -> None:
    journal([bag_view()])
    server = serve({api.GetBags: api.Bags([running_bag()]), api.GetPilots: []})
    server.answers[api.GetEvents] = lambda _: server.leave()
    outcome = cli("watch")
    assert server.asked(api.GetEvents), "it was followed"
    assert outcome.code == 0
    assert outcome.lines[-1].startswith("bag 7 render: 10 tasks done")


def test_without_a_terminal_progress_is_told_in_lines_and_not_before_json(cli: Cli, serve: Serve) -> None:
    server = serve({api.GetPilots: []})

    def end(_: api.GetEvents) -> list[api.BagEvents]:
        server.answers[api.GetBags] = api.Bags([bag_view()])
        return []

    server.answers[api.GetEvents] = end

    def shown(*options: str) -> Outcome:
        server.answers[api.GetBags] = api.Bags([running_bag()])
        return cli("watch", *options)

    progress, last = shown().lines
    assert "bag 7 render: 4 of 10 done" in progress
    assert last.startswith("bag 7 render: 10 tasks done")
    assert [bag["state"] for bag in shown("--json").value["bags"]] == ["done"]


def test_without_a_daemon_an_unfinished_bag_is_an_error_at_once(
    cli: Cli, journal: Callable[[list[BagView] | None], None]
) -> None:
    journal([running_bag()])
    outcome = cli("watch", "--quiet")
    assert outcome.code == 1
    assert "bag 7 makes no progress" in outcome.err


@pytest.mark.parametrize("said", [None, [running_bag()]])
def test_a_daemon_that_stays_away_is_an_error_after_a_while(
    cli: Cli,
    serve: Serve,
    journal: Callable[[list[BagView] | None], None],
    monkeypatch: pytest.MonkeyPatch,
    state: Path,
    said: list[BagView] | None,
) -> None:
    journal(said)
    monkeypatch.setattr(asking, "PATIENCE", 0.5)
    monkeypatch.setattr(asking, "NOTICE", 0.0)
    remember_config(state, Path("/my sites/hpc.yaml"), ["hpc"])
    server = serve({api.GetBags: api.Bags([running_bag()]), api.GetPilots: []})
    server.answers[api.GetEvents] = lambda _: server.leave()
    outcome = cli("watch")
    assert outcome.code == 1
    assert outcome.err.count("the daemon does not answer") == 1
    assert "makes no progress" in outcome.err
    assert "`adaptor daemon start --config '/my sites/hpc.yaml'` continues" in outcome.err


def test_a_daemon_that_comes_back_is_followed_on(
    cli: Cli, serve: Serve, journal: Callable[[list[BagView] | None], None]
) -> None:
    journal(None)
    first = serve({api.GetBags: api.Bags([running_bag()]), api.GetPilots: []})
    ended = {api.GetBags: api.Bags([bag_view()]), api.GetPilots: []}
    coming = threading.Timer(0.3, lambda: serve(ended))

    def leave(_: api.GetEvents) -> None:
        first.leave()
        coming.start()

    first.answers[api.GetEvents] = leave
    assert cli("watch", "--quiet").code == 0
    coming.join()


def snapshot(after: float, *pilots: Any, **changes: Any) -> Overview:
    return Overview(NOW + after, [running_bag(**changes)], list(pilots))


def test_lines_come_at_sensible_changes() -> None:
    narrator = Narrator()
    first = narrator.lines(snapshot(0, done=0, waiting=10, running=0))
    assert [line.partition(" ")[2] for line in first] == ["bag 7 render: 0 of 10 done, 10 waiting, mean 2.5s"]
    assert narrator.lines(snapshot(1, done=0, waiting=8, running=2)) == []
    queued = pilot_view(1, state="queued", predicted_start=None)
    assert [line.partition(" ")[2] for line in narrator.lines(snapshot(2, queued, done=0, waiting=8))] == [
        "1 pilot: 1 queued"
    ]
    running = pilot_view(1, state="running", note="no worker has reached the daemon")
    assert narrator.lines(snapshot(3, running, done=0, waiting=8)) == []
    later = narrator.lines(snapshot(20, running, done=5, waiting=3, failed=1, running=1))
    assert len(later) == 3
    assert "pilot 1: no worker has reached the daemon" in later[1]
    assert "5 of 10 done, 1 failed, 1 running, 3 waiting, mean 2.5s" in later[2]
    assert narrator.lines(Overview(NOW + 30, [bag_view()], [])) == []


def test_a_summary_points_to_what_failed() -> None:
    text = summary(bag_view(state="failed", done=7, failed=2, cancelled=1))
    assert "7 of 10 done, 2 failed, 1 cancelled" in text
    assert "adaptor results 7 --failed" in text


def test_the_live_display_hands_every_snapshot_on(capsys: pytest.CaptureFixture[str]) -> None:
    snapshots = [
        snapshot(0, pilot_view(1, state="running", note="slow [start]"), name="[red]x"),
        Overview(NOW + 9, [bag_view(name="[red]x")], []),
    ]
    assert list(display(snapshots)) == snapshots
    shown = capsys.readouterr().out
    assert "bag 7 [red]x" in shown
    assert "10 of 10 done" in shown


def test_while_the_next_job_of_the_daemon_waits_a_bag_is_followed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the scheduler takes; it is said once."""
    monkeypatch.setenv("ADAPTOR_DIR", str(tmp_path / "state"))
    jobs = DaemonJobs(series="ab", site="hpc", walltime=60, memory=1, next_job="12")
    write_jobs(state_directory(), jobs)
    said: list[str] = []
    outage, silence = Outage(say=said.append), NoDaemonError("no daemon: job 12 is next")
    assert [_endure(outage, silence, "1") > 0 for _ in range(3)] == [True] * 3
    assert said == ["adaptor: no daemon: job 12 is next"]
    forget_jobs(state_directory())
    with pytest.raises(NoDaemonError, match="adaptor daemon start"):
        _endure(outage, silence, "1")
