"""Nodes of this machine that shell commands use, and that the real commands reclaim."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.model import Request
from adaptor.processes.trees import end_trees
from adaptor.reports import JobReport, OwnJob
from adaptor.resources import TaskSize
from adaptor.units import Duration
from adaptor_donation_agents.agents import Agents
from adaptor_donation_agents.records import marker
from backends.base import PilotOrder
from backends.donation import agent_id, node_and_tag
from tests.living import names_below, oldest_child, read_pids, until

DEADLINE = 60.0
TIMEOUT = 5.0
"""Seconds in which a backend ends an agent here; a worker has 2 s of them, and is killed then."""
PATIENT = 20.0
"""Seconds that a reclaim may take here, as on a machine where many processes want to run."""
IMPATIENT = 10.0
"""The same where it waits in vain for processes that ignore SIGTERM: they are killed after 6 s of them."""

STUBBORN = """
trap '' TERM HUP INT
echo $$ >> {pids}
(setsid env -i sh -c 'trap "" TERM HUP; echo $$ >> {pids}; sleep 1000 & echo $! >> {pids}; wait' &)
while :; do sleep 1000; done
"""
"""Ignores signals, and has fled into another session, without a parent, without its environment."""


def worker_of(keeper: int, sleeping: int = 1) -> psutil.Process:
    """The worker that a keeper has started, when so many processes of the use have come to their `sleep`."""
    top = psutil.Process(keeper)
    until(lambda: names_below(top).count("sleep") >= sleeping, f"{sleeping} of the use sleep")
    worker = oldest_child(top)
    assert worker is not None
    return worker


class DonatedNodes:
    """The donated nodes of one site whose nodes are all this machine."""

    def __init__(self, folder: Path, launcher: Sequence[str] = (), **site: Any) -> None:
        self.folder = folder
        self.runtime = folder / "runtime"
        self.donation = DonationConfig(
            mode="agent",
            launcher=tuple(launcher),
            runtime_directory=str(self.runtime),
            reclaim_timeout=Duration(TIMEOUT),
        )
        self.site = SiteConfig(backend="slurm", donation=self.donation, **site)
        self.notes = folder / "notes"
        self.agents = self.reopened()
        self.interpreter = [sys.executable, "-I"]
        """Interpreter of prologs and epilogs."""
        self._orders = 0

    def reopened(self) -> Agents:
        """The agents of a daemon that was started again."""
        return Agents(self.site, self.donation, self.notes, sys.executable)

    @property
    def own(self) -> Path:
        return self.runtime / str(os.getuid())

    def order(self, node: str, command: str, tr: int = 600, tag: str = "") -> PilotOrder:
        self._orders += 1
        directory = self.folder / f"pilot-{self._orders}"
        directory.mkdir(mode=0o700)
        return PilotOrder(
            tag=tag or f"test.{self._orders}",
            request=Request(2, tr),
            task=TaskSize(),
            directory=directory,
            worker=("/bin/sh", "-c", command),
            environment={"ADAPTOR_PILOT": str(self._orders)},
            node=node,
        )

    def end(self, *ids: str) -> None:
        """End the agents with these ids."""
        self.agents.end([OwnJob(id, node_and_tag(id)[1]) for id in ids])

    def lend(self, node: str, command: str = "exec sleep 1000", tr: int = 600) -> str:
        """The tag of a use that runs."""
        order = self.order(node, command, tr)
        assert self.agents.start(order) == agent_id(node, order.tag)
        return order.tag

    def lend_stubborn(self, node: str = "n1") -> tuple[str, list[int]]:
        """The tag, and the processes that do not want to go."""
        pids = self.folder / f"pids-{self._orders}"
        tag = self.lend(node, STUBBORN.format(pids=pids))
        return tag, read_pids(pids, 3)

    def report(self, tag: str) -> JobReport:
        (found,) = self.agents.reports([], tag)
        return found

    def keeper(self, node: str = "n1") -> int:
        return int(self.record(node)["keeper"]["pid"])

    def worker(self, node: str = "n1") -> psutil.Process:
        """The worker, once it has come to its `sleep`."""
        return worker_of(self.keeper(node))

    def record(self, node: str = "n1") -> dict[str, Any]:
        return dict(json.loads((self.own / f"use@{node}").read_text()))

    def reclaim(self, node: str = "n1", *options: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        """Reclaim a node as a prolog does; that must succeed in any case."""
        done = subprocess.run(
            self.reclaim_words(node, *options), timeout=2 * DEADLINE, **{**_TEXT, **settings}
        )
        assert done.returncode == 0
        assert "Traceback" not in done.stderr
        return done

    def reclaim_words(self, node: str, *options: str) -> list[str]:
        words = [
            *self.interpreter,
            "-m",
            "adaptor_donation_agents.reclaim",
            f"--runtime={self.runtime}",
        ]
        return [*words, f"--timeout={PATIENT}", *options, "--", node]

    def end_all(self) -> None:
        """Nothing of a test outlives it."""
        for lock in self.runtime.glob("*/lock@*"):
            uid, node = int(lock.parent.name), lock.name.partition("@")[2]
            try:
                keepers = [int(json.loads((lock.parent / f"use@{node}").read_text())["keeper"]["pid"])]
            except (FileNotFoundError, ValueError, KeyError, TypeError):
                keepers = []
            end_trees(marker(str(self.runtime), uid, node), keepers, time.monotonic() + DEADLINE)


_TEXT: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
