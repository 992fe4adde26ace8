"""Leases as a backend sees them: started, watched and ended by commands on nodes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.processes.notes import END, JOB, START, note_path
from adaptor.reports import JobState
from adaptor.units import Duration
from adaptor_donation_agents import agents
from adaptor_donation_agents.agents import Agents, command_on
from adaptor_donation_agents.notes import AgentEnd, AgentNotes, AgentStart, Ordered, report
from backends.base import SchedulerError, SubmitUncertain
from backends.donation import agent_id, is_agent, node_and_tag
from backends.machines.base import CommandAnswer, CommandHung
from backends.machines.here import Here
from tests.donation_agents.donated_nodes import TIMEOUT, DonatedNodes
from tests.donation_agents.patience import PATIENCE, be_patient
from tests.living import is_alive, is_gone, until


def test_a_pilot_from_its_start_to_its_end(nodes: DonatedNodes) -> None:
    order = nodes.order("n1", "exec sleep 1000")
    id = nodes.agents.start(order)
    assert is_agent(id)
    assert node_and_tag(id) == ("n1", order.tag)
    (running,) = nodes.agents.reports([id], "another")
    assert (running.state, running.nodes, running.tag) == (JobState.RUNNING, ("n1",), order.tag)
    assert running.start is not None
    be_patient(nodes)
    nodes.end(id)
    (ended,) = nodes.agents.reports([id], "another")
    assert ended.state is JobState.CANCELLED
    assert ended.end is not None
    assert ended.yielded is not None


@pytest.mark.parametrize(
    ("command", "state", "reason"),
    [
        ("exit 0", JobState.COMPLETED, ""),
        ("exit 3", JobState.FAILED, "exit code 3"),
        ("kill -9 $$", JobState.FAILED, "signal 9"),
        ("exec /no/such/program", JobState.FAILED, "exit code 127"),
    ],
)
def test_a_worker_that_leaves_by_itself(
    nodes: DonatedNodes, command: str, state: JobState, reason: str
) -> None:
    tag = nodes.lend("n1", command)
    until(lambda: nodes.report(tag).end is not None, "it has ended")
    assert nodes.report(tag).state is state
    assert reason in nodes.report(tag).reason


def test_a_pilot_does_not_outlast_its_time(nodes: DonatedNodes) -> None:
    tag = nodes.lend("n1", "trap '' TERM; while :; do sleep 1000; done", tr=1)
    until(lambda: nodes.report(tag).end is not None, "it has ended")
    assert (nodes.report(tag).state, nodes.report(tag).reason) == (JobState.WALLTIME, "its time limit of 1 s")


def test_many_are_ended_at_once(nodes: DonatedNodes) -> None:
    tags = {node: nodes.lend(node) for node in ("n1", "n2", "n3")}
    keepers = [nodes.keeper(node) for node in tags]
    be_patient(nodes)
    ids = [agent_id(node, tag) for node, tag in tags.items()]
    nodes.end(*ids, "agent:n9:never.was", ids[0])
    assert not any(is_alive(keeper) for keeper in keepers)
    assert {each.state for each in nodes.agents.reports(ids, "-")} == {JobState.CANCELLED}
    nodes.end(*ids)


def test_it_is_found_again_after_a_restart(nodes: DonatedNodes) -> None:
    tag = nodes.lend("n1")
    be_patient(nodes)
    assert nodes.report(tag).state is JobState.RUNNING
    assert [each.tag for each in nodes.agents.reports([], "test.")] == [tag]
    nodes.end(agent_id("n1", tag))
    assert nodes.reopened().reports([], tag)[0].state is JobState.CANCELLED


def test_a_launcher_is_called_with_the_nodes_name(tmp_path: Path) -> None:
    nodes = DonatedNodes(tmp_path, launcher=("/usr/bin/env", "NAME={node}"))
    seen = tmp_path / "seen"
    nodes.lend("n7", f"echo $NAME > {seen}")
    until(lambda: seen.exists() and seen.read_text(), "it has told")
    assert seen.read_text() == "n7\n"
    nodes.end_all()


def test_a_launcher_that_fails_leaves_open_what_became_of_it(tmp_path: Path) -> None:
    nodes = DonatedNodes(tmp_path, launcher=("/bin/sh", "-c", "echo no route to {node} >&2; exit 255"))
    with pytest.raises(SubmitUncertain, match="n1: /bin/sh failed with status 255: no route to n1"):
        nodes.agents.start(nodes.order("n1", "exit 0"))
    assert nodes.agents.reports([], "test.") == [], "it has not started as far as anybody knows"


def test_an_order_that_no_node_has_carried_out_is_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = DonatedNodes(tmp_path, launcher=("/bin/false", "{node}"))
    with pytest.raises(SubmitUncertain):
        nodes.agents.start(nodes.order("n1", "exit 0", tag="test.never"))
    order = note_path(nodes.notes, "test.never", JOB)
    nodes.agents.reports([], "test.")
    assert order.exists(), "it may be on its way"
    monkeypatch.setattr(agents, "_STALE", -1.0)
    nodes.agents.reports([], "test.")
    assert not order.exists()


def test_a_launcher_that_hangs(tmp_path: Path) -> None:
    launcher = ("/bin/sh", "-c", "sleep 1000 # {node}")
    nodes = DonatedNodes(tmp_path, launcher=launcher, command_timeout=Duration(0.2))
    with pytest.raises(SubmitUncertain, match="did not answer"):
        nodes.agents.start(nodes.order("n1", "exit 0"))


def test_a_launcher_that_does_not_exist(tmp_path: Path) -> None:
    nodes = DonatedNodes(tmp_path, launcher=("/no/such/launcher", "{node}"))
    with pytest.raises(SchedulerError, match="cannot be run") as raised:
        nodes.agents.start(nodes.order("n1", "exit 0"))
    assert not isinstance(raised.value, SubmitUncertain)


def test_a_start_whose_answer_is_lost_is_found_by_its_tag(tmp_path: Path) -> None:
    class Losing(Here):
        def run(
            self, arguments: Sequence[str], variables: Mapping[str, str], timeout: float
        ) -> CommandAnswer:
            super().run(arguments, variables, timeout)
            raise CommandHung("the connection was lost before it had answered")

    nodes = DonatedNodes(tmp_path)
    nodes.agents = Agents(nodes.site, nodes.donation, nodes.notes, sys.executable, Losing())
    order = nodes.order("n1", "exec sleep 1000")
    with pytest.raises(SubmitUncertain):
        nodes.agents.start(order)
    assert nodes.report(order.tag).state is JobState.RUNNING
    nodes.end_all()


def test_a_node_that_is_not_reached_any_more_counts_as_failed(tmp_path: Path) -> None:
    switch = tmp_path / "up"
    switch.touch()
    launcher = ("/bin/sh", "-c", f'test -e {switch} || exit 255; exec "$@"', "{node}")
    nodes = DonatedNodes(tmp_path, launcher=launcher)
    tag = nodes.lend("n1")
    switch.unlink()
    nodes.end(agent_id("n1", tag))
    assert nodes.report(tag).state is JobState.NODE_FAILED
    assert "n1 is not reached" in nodes.report(tag).reason
    nodes.end_all()


def test_a_node_that_knows_nothing_of_it_counts_as_failed(nodes: DonatedNodes) -> None:
    """It was started anew in between."""
    tag = nodes.lend("n1")
    keeper = nodes.keeper()
    os.kill(keeper, signal.SIGKILL)
    assert is_gone(keeper)
    nodes.end_all()
    (nodes.own / "use@n1").unlink()
    nodes.end(agent_id("n1", tag))
    assert nodes.report(tag).state is JobState.NODE_FAILED
    assert nodes.report(tag).reason == "nothing of it was left on n1"


def test_it_ends_while_it_is_being_cancelled_and_reclaimed(nodes: DonatedNodes) -> None:
    tag, pids = nodes.lend_stubborn()
    be_patient(nodes)
    cancelling = threading.Thread(target=nodes.agents.end, args=([agent_id("n1", tag)],))
    cancelling.start()
    nodes.reclaim("n1", "--job=1", f"--timeout={PATIENCE}")
    cancelling.join()
    assert not any(is_alive(pid) for pid in pids)
    assert nodes.report(tag).state in (JobState.CANCELLED, JobState.PREEMPTED)


def test_a_damaged_note_is_left_out(nodes: DonatedNodes, caplog: pytest.LogCaptureFixture) -> None:
    tag = nodes.lend("n1", "exit 0")
    until(lambda: nodes.report(tag).end is not None, "it has ended")
    note_path(nodes.notes, tag, END).write_text("{")
    again = nodes.reopened()
    assert again.reports([], tag)[0].state is JobState.RUNNING, "what is unreadable is no end"
    again.reports([], tag)
    assert caplog.text.count("a damaged note was left out") == 1


def test_notes_are_forgotten_when_nobody_asks_for_them_any_more(nodes: DonatedNodes) -> None:
    for number in range(60):
        tag = f"old.{number}"
        nodes.agents._write(nodes.order("n1", "exit 0", tag=tag))
        note_path(nodes.notes, tag, START).write_text('{"started": 1}')
        note_path(nodes.notes, tag, END).write_text('{"ended": 2, "state": "completed"}')
    running = nodes.lend("n1")
    wanted = agent_id("n1", "old.7")
    assert len(nodes.agents.reports([wanted], "old.")) == 60
    nodes.agents.reports([wanted], "old.")
    assert [each.tag for each in nodes.agents.reports([wanted], "")] == ["old.7", running]


def test_the_prologue_of_the_site_comes_before_the_worker(tmp_path: Path) -> None:
    nodes = DonatedNodes(tmp_path, prologue="export GREETING=hello")
    seen = tmp_path / "seen"
    nodes.lend("n1", f"echo $GREETING > {seen}")
    until(lambda: seen.exists() and seen.read_text(), "it has told")
    assert seen.read_text() == "hello\n"
    nodes.end_all()


def test_the_worker_ends_before_the_reclaim_has_to_kill_it(nodes: DonatedNodes) -> None:
    assert 0 < nodes.donation.grace < 0.6 * TIMEOUT


def test_a_folder_that_cannot_be_made(nodes: DonatedNodes, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    broken = Agents(nodes.site, nodes.donation, tmp_path / "file" / "notes", sys.executable)
    with pytest.raises(SchedulerError, match="private folder"):
        broken.reports([], "")


@pytest.mark.parametrize("node", ["", "-oProxyCommand=x", "a b", "n1;reboot", "../n1", "$(reboot)"])
def test_no_name_of_a_node_is_a_command(node: str) -> None:
    with pytest.raises(SchedulerError, match="cannot be donated"):
        command_on(["ssh", "{node}"], node, ["true"])


@given(st.text(max_size=20))
def test_what_passes_a_launcher_means_the_same_to_a_shell(word: str) -> None:
    try:
        (passed,) = command_on(["{node}"], "n1", [word])[1:]
    except SchedulerError:
        return
    assert passed == word
    assert word
    assert not set(word) & set(" \t\n\"'\\$`;&|<>(){}[]*?!#~^")


def test_what_has_no_end_long_after_its_time_is_lost() -> None:
    entry = AgentNotes(Ordered("t.1", "n1", 100, 2.0), AgentStart(1000.0), None)
    assert report(entry, None, 1150.0).state is JobState.RUNNING  # type: ignore[union-attr]
    late = report(entry, None, 1163.0)
    assert late is not None
    assert (late.state, late.end) == (JobState.NODE_FAILED, 1100.0)


def test_the_note_of_the_keeper_is_worth_more_than_what_we_think() -> None:
    note = AgentEnd(ended=5.0, state=JobState.COMPLETED)
    thought = AgentEnd(ended=6.0, state=JobState.NODE_FAILED, reason="not reached")
    entry = AgentNotes(Ordered("t.1", "n1", 100, 2.0), AgentStart(1.0), note)
    found = report(entry, thought, 7.0)
    assert found is not None
    assert found.state is JobState.COMPLETED
