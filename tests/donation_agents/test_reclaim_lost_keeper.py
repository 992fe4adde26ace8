"""Root takes a node back from a user whose keeper is dead: it sees everything, or says what it does not."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adaptor.processes.identity import own_identity, start_ticks
from adaptor_donation_agents import free_node
from tests.donation_agents.donated_nodes import IMPATIENT, DonatedNodes
from tests.donation_agents.users import (
    DEAF,
    QUIET,
    USER,
    as_user,
    forged,
    lend_and_lose_keeper,
    needs_root,
    open_to_all,
)
from tests.living import is_alive, read_pids, until

pytestmark = needs_root

CLOSED = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); time.sleep(1000)"
"""It may not be dumped, so that only root can read its environment."""
HEADLESS = (
    "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(1000,)).start();"
    "ctypes.CDLL(None).pthread_exit(None)"
)
"""Its first thread has ended, so that it looks like a zombie."""
CHAIN = """
import os, time
limit = time.monotonic() + 60
while time.monotonic() < limit:
    if os.getpid() != os.getsid(0):
        os.setsid()
    if os.fork():
        os._exit(0)
"""
"""Its only process flees from every look: each generation leads a session of its own and ends at once."""

HUNTER = """
import os, signal, sys, time
known = {os.getpid(), *map(int, sys.argv[1:])}
print("ready", flush=True)
while True:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in known:
            try:
                os.kill(int(name), signal.SIGKILL)
            except OSError:
                pass
"""


@pytest.fixture
def open_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[DonatedNodes]:
    with open_to_all(monkeypatch) as nodes:
        yield nodes


def take_back(nodes: DonatedNodes, **settings: Any) -> subprocess.CompletedProcess[str]:
    return nodes.reclaim("n1", "--job=2", **settings)


def pid_of(nodes: DonatedNodes) -> int:
    """The number that a task of USER has written down."""
    (pid,) = read_pids(nodes.folder / f"home-{USER}-n1" / "pid", 1)
    return pid


def test_a_stopped_worker_of_another_user_is_found(open_nodes: DonatedNodes) -> None:
    tag, worker = lend_and_lose_keeper(open_nodes, DEAF)
    below = [each.pid for each in worker.children(recursive=True)]
    done = open_nodes.reclaim("n1", "--job=2", f"--timeout={IMPATIENT}")
    assert not any(is_alive(pid) for pid in [worker.pid, *below])
    assert f"freed of {tag}" in done.stdout
    assert "did not end it" in done.stderr


def test_the_lender_himself_needs_no_right_but_his_own(open_nodes: DonatedNodes) -> None:
    tag, worker = lend_and_lose_keeper(open_nodes)
    done = as_user([*open_nodes.reclaim_words("n1", f"--cancel={tag}")])
    assert not is_alive(worker.pid)
    assert f"freed of {tag}" in done.stdout
    assert "may not have left" not in done.stderr


@pytest.mark.parametrize("code", [CLOSED, HEADLESS], ids=["not dumpable", "first thread ended"])
def test_processes_that_are_hard_to_see(open_nodes: DonatedNodes, code: str) -> None:
    python = open_nodes.interpreter[0]
    command = f"setsid {python} -c '{code}' & echo $! >{open_nodes.folder}/home-{USER}-n1/pid; {QUIET}"
    _, worker = lend_and_lose_keeper(open_nodes, command)
    pid = pid_of(open_nodes)
    until(lambda: is_hard_to_see(pid), "it is hard to see")
    worker.kill()  # what it started has no parent of the use any more
    take_back(open_nodes)
    assert not has_threads(pid)


def is_hard_to_see(pid: int) -> bool:
    return has_threads(pid) and (not is_alive(pid) or os.stat(f"/proc/{pid}/environ").st_uid == 0)


def has_threads(pid: int) -> bool:
    """Whether any of its threads lives, the first or another."""
    try:
        stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:
        return False
    return any(stat.rpartition(")")[2].split()[0] not in "ZX" for stat in stats)


def test_where_it_may_not_look_it_does_not_say_freed(open_nodes: DonatedNodes) -> None:
    """As root in a container, which may not examine processes of other groups."""
    tag, worker = lend_and_lose_keeper(open_nodes)
    done = take_back(open_nodes, preexec_fn=lose_the_right_to_look)
    assert is_alive(worker.pid)
    assert "freed" not in done.stdout
    assert f"{tag} may not have left: no environment can be read of" in done.stderr
    assert str(worker.pid) in done.stderr
    done = take_back(open_nodes)  # it was not forgotten
    assert f"freed of {tag}" in done.stdout
    assert not is_alive(worker.pid)
    assert "not in use" in take_back(open_nodes).stdout


def lose_the_right_to_look() -> None:
    cap_sys_ptrace, drop_from_bounding_set = 19, 24
    ctypes.CDLL(None).prctl(drop_from_bounding_set, cap_sys_ptrace, 0, 0, 0)


def test_what_has_shed_its_environment_is_mentioned(open_nodes: DonatedNodes) -> None:
    command = f"(setsid env -i $(command -v sleep) 1000 & echo $! >pid) ; {QUIET}"
    tag, worker = lend_and_lose_keeper(open_nodes, command, sleeping=2)
    pid = pid_of(open_nodes)
    done = take_back(open_nodes)
    assert not is_alive(worker.pid)
    assert "freed" not in done.stdout
    assert f"no environment can be read of {pid}" in done.stderr
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_alive(pid), "it is dead")
    assert f"freed of {tag}" in take_back(open_nodes).stdout


def test_what_stayed_in_the_session_of_a_task_is_found(open_nodes: DonatedNodes) -> None:
    command = f"setsid sh -c '(env -i sh -c \"echo \\$\\$ >pid; exec sleep 1000\" &) ; {QUIET}' & {QUIET}"
    tag, worker = lend_and_lose_keeper(open_nodes, command, sleeping=3)
    pid = pid_of(open_nodes)
    worker.kill()
    assert f"freed of {tag}" in take_back(open_nodes).stdout
    assert not is_alive(pid)


def test_a_chain_of_forks_is_ended(open_nodes: DonatedNodes) -> None:
    (open_nodes.folder / "chain.py").write_text(CHAIN)
    _, worker = lend_and_lose_keeper(
        open_nodes, f"{open_nodes.interpreter[0]} {open_nodes.folder}/chain.py & {DEAF}"
    )
    worker.kill()
    until(lambda: newest_of_chain(open_nodes), "the chain has begun")
    # On a busy machine the chain may flee for long; it would end by itself after a minute.
    open_nodes.reclaim("n1", "--job=2", "--timeout=40")
    assert not any(newest_of_chain(open_nodes) for _ in range(3000))


def newest_of_chain(nodes: DonatedNodes) -> bool:
    """Whether the process that the kernel has made last is one of the chain."""
    last = int(Path("/proc/loadavg").read_text().split()[-1])
    with contextlib.suppress(OSError):
        return f"{nodes.folder}/chain.py".encode() in Path(f"/proc/{last}/cmdline").read_bytes()
    return False


def test_a_look_that_dies_is_no_answer() -> None:
    reader, writer = os.pipe()
    os.write(writer, b'["x.1", tr')
    os.close(writer)
    answers, problems = free_node._collect({reader: 17}, time.monotonic() + 10)
    assert answers == []
    assert problems == ["what frees it of user 17 died before it answered"]


def test_a_lender_cannot_end_what_frees_the_node_of_him(open_nodes: DonatedNodes) -> None:
    """He kills or stops whatever has his number, as fast as he can."""
    _, worker = lend_and_lose_keeper(open_nodes, DEAF)
    known = [worker.pid, *(each.pid for each in worker.children(recursive=True))]
    hunter = subprocess.Popen(
        [open_nodes.interpreter[0], "-c", HUNTER, *map(str, known)],
        user=USER,
        group=USER,
        extra_groups=[],
        stdout=subprocess.PIPE,
        cwd="/",
    )
    try:
        assert hunter.stdout is not None
        hunter.stdout.readline()
        done = open_nodes.reclaim("n1", "--job=2", f"--timeout={IMPATIENT}")
    finally:
        hunter.kill()
        hunter.wait()
    assert not is_alive(worker.pid)
    assert "not in use" not in done.stdout


@pytest.mark.parametrize("earlier", [0, 1], ids=["its process", "an earlier one with its number"])
def test_a_record_with_the_process_of_somebody_else_costs_no_time(
    open_nodes: DonatedNodes, earlier: int
) -> None:
    victim = subprocess.Popen(["sleep", "1000"])
    try:
        place, ticks = forged(open_nodes), start_ticks(victim.pid)
        assert ticks is not None
        keeper = {**own_identity(), "pid": victim.pid, "ticks": ticks - earlier}
        record = {"tag": "x.1", "notes": "/", "since": 0.0, "keeper": keeper}
        (place / "use@n1").write_text(json.dumps(record))
        os.chown(place / "use@n1", USER, USER)
        done = open_nodes.reclaim("n1", "--job=1", "--timeout=600")  # the subprocess itself has far less
        assert victim.poll() is None
        assert ("not its agent's" in done.stderr) is not bool(earlier)
    finally:
        victim.kill()
        victim.wait()
