"""`python -m lab.campaign.donation_agents`: local jobs on lent nodes whose keepers are killed and frozen.

A bag uses the idle nodes of a throwaway Slurm or OpenPBS in agent mode. Local jobs take the nodes one by
one; before or while they do, something happens to the keeper or the worker there. When the script of a job
starts, no process of the bag may live on its node: neither one with the node's mark, nor one that a task has
named.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from adaptor.processes.identity import start_ticks
from lab.campaign.lending.lender import folder_for_all
from lab.campaign.lending.on_openpbs import openpbs_scene
from lab.campaign.lending.on_slurm import slurm_scene
from lab.campaign.lending.scene import LendingScene
from tests.clusters import openpbs, slurm
from tests.living import oldest_child, until

JOB = """#!/bin/sh
touch {folder}/started.{name}
while [ ! -e {folder}/looked.{name} ]; do sleep 0.05; done
"""
_PATIENCE = 150.0
"""Seconds for what must happen."""
_LENT_AGAIN = 60.0
"""Seconds after which the next job comes although its node is not lent again."""


@dataclass
class Outcome:
    """Findings of a campaign."""

    jobs: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    """Faults that hit a node in use, by their names."""
    seen: list[str] = field(default_factory=list)
    """Processes of ours that a local job met on its node."""
    troubles: list[str] = field(default_factory=list)
    """Jobs that did not start."""
    waits: list[float] = field(default_factory=list)
    """Seconds from the submission of a job for a node in use to the start of its script."""

    def __str__(self) -> str:
        waits = sorted(self.waits) or [0.0]
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        return "\n".join(
            [
                f"{self.jobs} local jobs, {len(self.waits)} on nodes in use: {kinds}",
                f"processes of ours that they met: {len(self.seen)}",
                f"jobs that did not start: {len(self.troubles)}",
                f"submission to start: median {statistics.median(waits):.1f} s, longest {waits[-1]:.1f} s",
                *self.seen,
                *self.troubles,
            ]
        )


KILL, STOP = signal.SIGKILL, signal.SIGSTOP
FAULTS: dict[str, list[tuple[str, signal.Signals]]] = {
    "nothing": [],
    "keeper killed": [("keeper", KILL)],
    "keeper frozen": [("keeper", STOP)],
    "worker killed": [("worker", KILL)],
    "worker frozen": [("worker", STOP)],
    "both frozen": [("keeper", STOP), ("worker", STOP)],
    "keeper killed, worker frozen": [("worker", STOP), ("keeper", KILL)],
    "keeper frozen, worker killed": [("keeper", STOP), ("worker", KILL)],
}
"""Signals that the keeper and the worker of a node get."""


SCENES: dict[str, Callable[[Path], AbstractContextManager[LendingScene]]] = {
    "slurm": slurm_scene,
    "openpbs": openpbs_scene,
}
UNAVAILABLE = {"slurm": slurm.available, "openpbs": openpbs.unavailable}
"""Why there can be no such scene here; empty where there can."""


def run(scheduler: str, jobs: int, seed: int, say: Callable[[str], object] = lambda text: None) -> Outcome:
    """Play so many local jobs. Raises AssertionError: the scene does not come up."""
    with folder_for_all() as root, SCENES[scheduler](root) as scene:
        return _Campaign(scene, random.Random(seed), say).play(jobs)


class _Campaign:
    def __init__(self, scene: LendingScene, random: random.Random, say: Callable[[str], object]) -> None:
        self._scene, self._lab, self._say = scene, scene.lab, say
        self._outcome, self._lock = Outcome(), threading.Lock()
        self._random = random

    def play(self, jobs: int) -> Outcome:
        nodes = self._scene.nodes
        script = self._lab.work / "task.sh"
        kinds = ["plain", "fleeing"] * (20 * jobs + 50)
        self._lab.bag(["#ADAPTOR allocation=transparent", *(f"sh {script} {kind}" for kind in kinds)])
        self._lab.submit("tasks.bag")
        until(lambda: all(map(self._use, nodes)), "all nodes are lent", timeout=_PATIENCE)
        plans = {
            node: [
                (f"{node}.{number}", self._random.choice(list(FAULTS)), self._random.random())
                for number in range(jobs * (index + 1) // len(nodes) - jobs * index // len(nodes))
            ]
            for index, node in enumerate(nodes)
        }
        with ThreadPoolExecutor(len(nodes)) as pool:
            for done in [pool.submit(self._play_on, node, plan) for node, plan in plans.items()]:
                done.result()
        return self._outcome

    def _play_on(self, node: str, plan: list[tuple[str, str, float]]) -> None:
        for name, fault, moment in plan:
            with contextlib.suppress(AssertionError):
                until(lambda: self._use(node), f"{node} is lent", timeout=_LENT_AGAIN, pause=0.1)
                time.sleep(moment)  # its tasks begin meanwhile
            self._one(node, name, fault, moment)

    def _one(self, node: str, name: str, fault: str, moment: float) -> None:
        """A local job on a node, and what happens there shortly before or after its submission."""
        before = moment < 0.6
        pair = self._pair(node)
        lent = pair is not None
        if before:
            lent = self._hit(fault, pair)
        script = self._lab.work / "jobs" / f"{name}.sh"
        script.write_text(JOB.format(folder=script.parent, name=name))
        asked = time.monotonic()
        self._scene.submit(node, script)
        if not before:
            time.sleep(2 * (moment - 0.6))
            lent = self._hit(fault, pair)
        started, looked = (script.parent / f"{word}.{name}" for word in ("started", "looked"))
        try:
            until(started.exists, f"job {name} starts", timeout=_PATIENCE, pause=0.01)
        except AssertionError as error:
            looked.touch()  # it must not hold the node for ever
            with self._lock:
                self._outcome.troubles.append(f"{fault}: {error}")
            return
        waited = time.monotonic() - asked
        seen = self._look(node)
        time.sleep(0.3)
        seen |= self._look(node)
        looked.touch()
        with self._lock:
            self._outcome.jobs += 1
            if lent:
                self._outcome.waits.append(waited)
                self._outcome.faults[fault] += 1
            self._outcome.seen += [f"{name} ({fault}): {each}" for each in sorted(seen)]
            self._say(f"{name}: {fault if lent else 'not lent'}, {waited:.1f} s, {len(seen)} processes seen")
        until(lambda: not self._scene.is_held(node), f"job {name} ends", timeout=_PATIENCE, pause=0.2)

    def _hit(self, fault: str, pair: tuple[psutil.Process, psutil.Process] | None) -> bool:
        """Whether there was something to hit."""
        if pair is None:
            return False
        victims = dict(zip(("keeper", "worker"), pair, strict=True))
        for victim, number in FAULTS[fault]:
            with contextlib.suppress(psutil.NoSuchProcess):
                victims[victim].send_signal(number)
        return True

    def _use(self, node: str) -> dict[str, Any] | None:
        """The record of the use of a node."""
        try:
            found = json.loads((self._lab.root / "lent" / str(self._lab.uid) / f"use@{node}").read_text())
        except (OSError, ValueError):
            return None
        return dict(found)

    def _pair(self, node: str) -> tuple[psutil.Process, psutil.Process] | None:
        """The keeper and the worker of a node."""
        use = self._use(node)
        if use is None:
            return None
        try:
            keeper = psutil.Process(use["keeper"]["pid"])
            worker = oldest_child(keeper)
        except psutil.NoSuchProcess:
            return None
        return None if worker is None else (keeper, worker)

    def _look(self, node: str) -> set[str]:
        """The processes of the bag that live on a node."""
        sign = f"ADAPTOR_SUPERVISED={self._lab.root}/lent/{self._lab.uid}/{node}".encode()
        found = set()
        for pid in psutil.pids():
            with contextlib.suppress(OSError):
                if sign in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    found.add(f"{pid} carries the mark of {node}")
        with contextlib.suppress(FileNotFoundError):
            for line in (self._lab.work / "pids" / node).read_text().splitlines():
                pid, *ticks = map(int, line.split())
                if [start_ticks(pid)] == ticks:  # none where it was killed while it named itself
                    found.add(f"{pid} is a process of a task")
        return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.campaign.donation_agents", description=__doc__)
    parser.add_argument("--scheduler", choices=SCENES, default="slurm")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    reason = UNAVAILABLE[options.scheduler]()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the cluster is taken down
    began = time.monotonic()
    outcome = run(options.scheduler, options.jobs, options.seed, lambda text: print(text, flush=True))
    print(f"\nseed {options.seed}, {time.monotonic() - began:.0f} s\n{outcome}")
    return 1 if outcome.seen or outcome.troubles else 0


if __name__ == "__main__":
    sys.exit(main())
