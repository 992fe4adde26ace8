"""Donated nodes that several users of this machine use; the tests are root's."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import adaptor
import adaptor_donation_agents
from adaptor_donation_agents.records import Order
from tests.donation_agents.donated_nodes import DonatedNodes, worker_of
from tests.living import PATIENCE, hold, is_alive, until

USER = 100_000 + 2 * (os.getpid() % 100_000)
"""User id of these tests alone: others may run at the same time, and some of them kill all that this user
runs."""
OTHER = USER + 1
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be several users")
QUIET = "while :; do sleep 1000; done"
DEAF = f"trap '' TERM; {QUIET}"

_UNNEEDED = shutil.ignore_patterns("__pycache__", "daemon", "cli", "budget", "crafting", "experiments")


def as_user(words: list[str], uid: int = USER) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        user=uid,
        group=uid,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@contextlib.contextmanager
def open_to_all(monkeypatch: pytest.MonkeyPatch) -> Iterator[DonatedNodes]:
    """Nodes below a folder that every user can reach, with a copy of the code there."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:  # what is killed may write yet
        folder = Path(name)
        folder.chmod(0o755)
        for package in (adaptor, adaptor_donation_agents):
            shutil.copytree(package.__path__[0], folder / "code" / package.__name__, ignore=_UNNEEDED)
        monkeypatch.setenv("PYTHONPATH", str(folder / "code"))
        nodes = DonatedNodes(folder)
        nodes.interpreter = [_interpreter_for_all()]
        yield nodes
        nodes.end_all()


def _interpreter_for_all() -> str:
    test = "import sys, adaptor_donation_agents.reclaim; sys.exit(sys.version_info < (3, 10))"
    for program in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            if as_user([program, "-c", test]).returncode == 0:
                return program
    pytest.skip("other users have no Python here that is new enough")


def lend_as(nodes: DonatedNodes, uid: int, node: str = "n1", command: str = DEAF) -> tuple[str, int]:
    """The tag and the keeper's number of a use of another user."""
    folder = nodes.folder / f"home-{uid}-{node}"
    folder.mkdir(mode=0o700)
    order: Order = {
        "tag": f"of.{uid}",
        "node": node,
        "p": 1,
        "tr": 600,
        "grace": 0.5,
        "worker": ["/bin/sh", "-c", command],
        "environment": {},
        "directory": str(folder),
        "runtime": str(nodes.runtime),
    }
    (folder / f"{order['tag']}.job.json").write_text(json.dumps(order))
    for path in (folder, *folder.iterdir()):
        os.chown(path, uid, uid)
    words = [
        *nodes.interpreter,
        "-m",
        "adaptor_donation_agents.keeper",
        str(folder / f"{order['tag']}.job.json"),
    ]
    done = as_user(words, uid)
    assert done.returncode == 0, done.stderr
    return order["tag"], int(done.stdout.split()[-1])


def lend_and_lose_keeper(
    nodes: DonatedNodes, command: str = QUIET, sleeping: int = 1
) -> tuple[str, psutil.Process]:
    """The tag and the worker of a use of USER whose worker is stopped and whose keeper is killed.

    `sleeping`: processes of the use that come to their `sleep` before.
    """
    nodes.reclaim("n1", "--job=1", f"--user={USER}", f"--user={OTHER}")
    nodes.reclaim("n1", "--job=1", "--offer")
    tag, keeper = lend_as(nodes, USER, command=command)
    worker = worker_of(keeper, sleeping)
    hold(worker)  # the kernel sends it SIGTERM when its keeper is killed
    os.kill(keeper, signal.SIGKILL)
    until(lambda: not is_alive(keeper), "the keeper is dead")
    return tag, worker


def forged(nodes: DonatedNodes, uid: int = USER, owner: int = USER) -> Path:
    """The folder that `owner` has made for `uid`."""
    nodes.runtime.mkdir(exist_ok=True)
    place = nodes.runtime / str(uid)
    place.mkdir()
    os.chown(place, owner, owner)
    return place
