"""Root frees nodes of all users, and no user can make root, or another user, do anything else."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from adaptor.processes.identity import own_identity, start_ticks
from adaptor_donation_agents.records import marker
from tests.donation_agents.donated_nodes import DonatedNodes, worker_of
from tests.donation_agents.users import OTHER, USER, as_user, forged, lend_as, needs_root, open_to_all
from tests.living import is_alive, until

pytestmark = needs_root


@pytest.fixture
def open_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[DonatedNodes]:
    with open_to_all(monkeypatch) as nodes:
        yield nodes


def test_root_frees_a_node_of_all_users(open_nodes: DonatedNodes) -> None:
    open_nodes.reclaim("n1", "--job=1", f"--user={USER}", f"--user={OTHER}")
    open_nodes.reclaim("n1", "--job=1", "--offer")
    leases = [lend_as(open_nodes, uid) for uid in (USER, OTHER)]
    done = open_nodes.reclaim("n1", "--job=2")
    for tag, keeper in leases:
        assert tag in done.stdout
        assert not is_alive(keeper)
    (end,) = open_nodes.folder.glob(f"home-{USER}-n1/*.end.json")
    assert json.loads(end.read_text())["state"] == "preempted"
    assert end.stat().st_uid == USER


def test_roots_mark_keeps_users_away(open_nodes: DonatedNodes) -> None:
    open_nodes.reclaim("n1", "--job=7", f"--user={USER}", umask=0o077)
    with pytest.raises(AssertionError, match="taken by local job 7"):
        lend_as(open_nodes, USER)


def test_a_user_does_not_end_the_use_of_another(open_nodes: DonatedNodes) -> None:
    open_nodes.reclaim("n2", "--job=1", f"--user={USER}", f"--user={OTHER}")
    _, keeper = lend_as(open_nodes, USER)
    done = as_user(open_nodes.reclaim_words("n1"), OTHER)
    assert "not in use" in done.stdout
    assert is_alive(keeper)


def test_a_record_that_names_the_process_of_somebody_else(open_nodes: DonatedNodes) -> None:
    victim = subprocess.Popen(["sleep", "1000"])
    try:
        place = forged(open_nodes)
        record = {"tag": "x.1", "notes": "/", "since": 0.0}
        ticks = start_ticks(victim.pid)
        keeper = {**own_identity(), "pid": victim.pid, "ticks": ticks}
        (place / "use@n1").write_text(json.dumps({**record, "keeper": keeper}))
        os.chown(place / "use@n1", USER, USER)
        open_nodes.reclaim("n1", "--job=1")
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


def test_a_marker_that_somebody_else_has_put_on(open_nodes: DonatedNodes) -> None:
    """A process with the marker of a user's lease that is not that user's."""
    place = forged(open_nodes)
    (place / "lock@n1").touch()
    sign = marker(str(open_nodes.runtime), USER, "n1")
    bystander = subprocess.Popen(["sleep", "1000"], env={"ADAPTOR_SUPERVISED": sign})
    try:
        open_nodes.reclaim("n1")
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_pipe_in_the_place_of_a_record_holds_nobody_up(open_nodes: DonatedNodes) -> None:
    place = forged(open_nodes)
    os.mkfifo(place / "use@n1")
    os.mkdir(open_nodes.runtime / str(OTHER))
    os.chown(open_nodes.runtime / str(OTHER), OTHER, OTHER)
    _, keeper = lend_as(open_nodes, OTHER)
    open_nodes.reclaim("n1", "--job=1")
    assert not is_alive(keeper)


def test_a_folder_that_is_not_its_users_is_not_looked_at(open_nodes: DonatedNodes) -> None:
    """Somebody has made a folder with the number of another user, and put a record into it."""
    place = forged(open_nodes, uid=OTHER, owner=USER)
    sleeper = subprocess.Popen(["sleep", "1000"], user=OTHER)
    try:
        keeper = {**own_identity(), "pid": sleeper.pid, "ticks": start_ticks(sleeper.pid)}
        record = {"tag": "x.1", "notes": "/", "since": 0.0, "keeper": keeper}
        (place / "use@n1").write_text(json.dumps(record))
        open_nodes.reclaim("n1", "--job=1")
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_runtime_folder_of_a_user_is_about_that_user_alone(open_nodes: DonatedNodes) -> None:
    """Who has made it may have put any number of names into it."""
    nodes = open_nodes
    nodes.runtime.mkdir()
    os.chown(nodes.runtime, USER, USER)
    _, keeper = lend_as(nodes, USER)
    with pytest.raises(AssertionError, match=f"belongs to user {USER}"):
        lend_as(nodes, OTHER)
    for uid in range(2000, 2100):
        (nodes.runtime / str(uid)).mkdir()
    nodes.reclaim("n1", "--job=5", f"--user={OTHER}")
    assert not is_alive(keeper)
    assert not (nodes.runtime / str(OTHER)).exists(), "root makes nothing there for anybody"


def test_a_process_of_root_is_never_signalled_by_a_users_record(open_nodes: DonatedNodes) -> None:
    open_nodes.reclaim("n2", "--job=1", f"--user={USER}")
    _, keeper = lend_as(open_nodes, USER)
    worker = worker_of(keeper)
    assert worker.uids().real == USER
    open_nodes.reclaim("n1")
    until(lambda: not is_alive(worker.pid), "the worker is dead")
