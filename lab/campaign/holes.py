"""Whether requests that are predicted to start now do start, on a real Slurm of four nodes of different size.

Memory is counted, two nodes have GPUs, and local jobs hold memory and GPUs beside processors. In each round a
few local jobs come, and the adaptive heuristic crafts requests for tasks of several sizes; each that is
predicted to start now is submitted, and must run after two cycles of Slurm's schedulers. With
`--without-nodes` the heuristic does not see the nodes, so that its profile counts processors only.

    python -m lab.campaign.holes --requests 100 --seed 1
"""

from __future__ import annotations

import argparse
import os
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.availability import Availability
from adaptor.crafting.fits import RequestShape
from adaptor.crafting.places import CraftingSituation
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.model import CraftedRequest, Limits
from adaptor.reports import JobState
from adaptor.resources import TaskSize
from adaptor.units import Duration
from backends.base import PilotOrder, SubmitRefused
from backends.slurm.backend import SlurmBackend
from tests.backends.orders import own
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import MIXED

SIZES = {
    "3 processors": TaskSize(processors=3),
    "2 GPUs": TaskSize(processors=1, gpus=2),
    "half a GPU": TaskSize(processors=1, gpus=0.5),
    "1 processor, 3000M": TaskSize(processors=1, memory=3000 * 2**20),
}
LOCAL = (
    ("-n1", "-c1", "--mem=3500M"),
    ("-n1", "-c1", "--mem=7000M"),
    ("-n2", "-c1", "--mem-per-cpu=3000M"),
    ("-n1", "-c1", "--mem=100M", "--gpus=1"),
    ("-n1", "-c3", "--mem=500M"),
    ("-n1", "-c2", "--mem=12000M"),
    ("-N1", "--exclusive"),
    ("-n6", "-c1", "--mem-per-cpu=200M"),
)
"""Requests of local jobs."""
MOST_LOCAL = 7
CYCLES = 2
PATIENCE = 60.0
"""Seconds for what Slurm does within its cycles."""


class Play:
    """One cluster, its local jobs, and the requests so far."""

    def __init__(self, slurm: ThrowawaySlurm, folder: Path, seed: int, *, nodes: bool) -> None:
        self._slurm = slurm
        self._folder = folder
        self._draw = random.Random(seed)
        self._nodes = nodes
        self._backend = SlurmBackend(SiteConfig(backend="slurm", command_timeout=Duration(20)))
        self._local: list[str] = []
        self.asked: Counter[str] = Counter()
        """By size of task: requests that were predicted to start now."""
        self.started: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        """By the backend, since they can never start."""

    def round(self) -> None:
        """A few local jobs more, some older ones less, then requests for tasks of each size."""
        self._draw.shuffle(self._local)
        while len(self._local) > self._draw.randint(0, MOST_LOCAL):
            self._slurm.run(["scancel", self._local.pop()])
        for _ in range(self._draw.randint(1, 3)):
            self._local.append(self._submit_local())
        self._cycles()
        for name, task in SIZES.items():
            self._ask(name, task)

    def _submit_local(self) -> str:
        options = [f"-t{self._draw.choice([5, 30, 120])}", "--output=/dev/null", *self._draw.choice(LOCAL)]
        return self._slurm.run(["sbatch", "--parsable", *options, "--wrap", "sleep 7200"]).strip()

    def _ask(self, name: str, task: TaskSize) -> None:
        crafted, now = self._crafted(task), time.time()
        jobs = [self._submit(name, task, each) for each in crafted if (each.predicted_start or 0) <= now]
        self._cycles()
        taken = [job for job in jobs if job is not None]
        states = {report.id: report.state for report in self._backend.jobs(taken, "no such tag")}
        self.asked[name] += len(jobs)
        self.started[name] += sum(states[job] is JobState.RUNNING for job in taken)
        self._backend.cancel(own(self._backend, *taken))
        self._until(lambda: not self._running(taken))

    def _crafted(self, task: TaskSize) -> list[CraftedRequest]:
        queue = self._backend.queue_state()
        if not self._nodes:
            queue = msgspec.structs.replace(queue, nodes=(), default_memory=None)
        rules = SiteRules(
            limits=Limits(max_pending_requests=3, max_proc=12, max_tr=3600),
            time_resolution=self._backend.time_resolution,
            slot_margin=self._backend.slot_margin,
            pad=30.0,
        )
        return adaptive(
            CraftingSituation(
                free=Availability(queue),
                shape=RequestShape.for_demand(rules, queue, Demand(runtime=500.0, task=task)),
                allowed_requests=rules.limits.in_system,
                remaining_tasks=8,
            )
        )

    def _submit(self, name: str, task: TaskSize, crafted: CraftedRequest) -> str | None:
        tag = f"hole-{sum(self.asked.values())}-{time.monotonic_ns()}"
        directory = self._folder / tag
        directory.mkdir(mode=0o700)
        order = PilotOrder(
            tag=tag,
            request=crafted.request,
            task=task,
            directory=directory,
            worker=("/bin/sleep", "600"),
            environment={},
        )
        try:
            return self._backend.submit(order)
        except SubmitRefused:
            self.refused[name] += 1
            return None

    def _cycles(self) -> None:
        """Wait until Slurm's schedulers have had so many cycles more.

        The second one, which backfills, runs only after changes: so it is given as many cycles of the first.
        """
        main, backfill = self._counts()
        self._until(lambda: self._counts()[0] > main + CYCLES)
        if self._waiting():
            self._until(lambda: self._counts()[1] > backfill + 1 or self._counts()[0] > main + 3 * CYCLES)

    def _counts(self) -> list[int]:
        return [int(count) for count in re.findall(r"Total cycles: +(\d+)", self._slurm.run(["sdiag"]))]

    def _waiting(self) -> bool:
        return bool(self._slurm.run(["squeue", "-h", "-t", "PD"]).strip())

    def _running(self, jobs: list[str]) -> bool:
        return bool(jobs and self._slurm.run(["squeue", "-h", "-j", ",".join(jobs)], check=False).strip())

    def _until(self, condition: Callable[[], bool]) -> None:
        give_up = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > give_up:
                raise TimeoutError("Slurm's schedulers stand still")
            time.sleep(0.3)


def play(requests: int, seed: int, *, nodes: bool) -> Play:
    with ThrowawaySlurm(MIXED) as slurm, tempfile.TemporaryDirectory() as folder:
        os.environ.update(slurm.env)
        playing = Play(slurm, Path(folder), seed, nodes=nodes)
        while sum(playing.asked.values()) < requests:
            playing.round()
        return playing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-nodes", action="store_true")
    chosen = parser.parse_args()
    found = play(chosen.requests, chosen.seed, nodes=not chosen.without_nodes)
    for name in SIZES:
        print(f"{name}: {found.started[name]} of {found.asked[name]} started, {found.refused[name]} refused")
    print(
        f"all: {sum(found.started.values())} of {sum(found.asked.values())} requests predicted to start now"
    )


if __name__ == "__main__":
    main()
