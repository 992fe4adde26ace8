"""`python -m bench.largest`: a look at the largest cluster, and the decision on it.

Answers of Slurm 26.05 and of OpenPBS 23.06 that were recorded are multiplied (`bench/multiplied.py`): 10,000
nodes of 64 processors, 20,000 running and 50,000 waiting jobs of 500 users, of which twenty in a row ask for
the same. The next answer is that of 15 s later, with 50 jobs gone and 50 new. Processor seconds and memory
are those of a process that only reads and decides; the third number is the time in multiples of a fixed work
that ran just before, for on a busy machine both get slower.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from adaptor.config.schema import SiteConfig
from adaptor.crafting.availability import Availability
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, SiteRules, SiteState
from adaptor.model import Limits, QueueState
from adaptor.resources import TaskSize
from backends.commands import CommandAnswer
from backends.machines.here import Here
from backends.observed.backend import BatchBackend
from backends.pbs.backend import PbsBackend
from backends.slurm import questions
from backends.slurm.backend import SlurmBackend
from bench import multiplied
from bench.multiplied import MARK, NOW

GB = 2**30


class _Cluster(Here):
    """Answers from the files of a look, through the pipe of a process."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.look = folder, 1

    def variables(self) -> dict[str, str]:
        return {"LOGNAME": "alice"}

    def run(self, arguments: Sequence[str], variables: Mapping[str, str], timeout: float) -> CommandAnswer:
        program, *words = arguments
        name = " ".join(arguments)
        if self.folder.name == "slurm":
            name = words[1] if program == "scontrol" else program
        return super().run(["cat", str(self.folder / str(self.look) / name)], variables, timeout)


def write(folder: Path, nodes: int, running: int, waiting: int, elements: int = 1) -> None:
    """The answers to both looks, as files."""
    for number, look in enumerate(multiplied.looks(nodes, running, waiting, elements), 1):
        for kind, answers in (("slurm", multiplied.of_slurm(look)), ("pbs", multiplied.of_pbs(look))):
            there = folder / kind / str(number)
            there.mkdir(parents=True)
            for name, text in answers.items():
                (there / name).write_text(text)


def _spent(what: str, step: Callable[[], object], profiled: bool) -> None:
    begin = time.process_time()
    sum(number % 7 for number in range(1_000_000))
    unit = time.process_time() - begin
    begin += unit
    if profiled:
        profile = cProfile.Profile()
        profile.runcall(step)
        pstats.Stats(profile).sort_stats("tottime").print_stats(18)
    else:
        step()
    spent = time.process_time() - begin
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1000
    print(f"{what:45} {spent:7.2f} s   peak {peak:5.0f} MB   {spent / unit:6.1f} units", flush=True)


def _view(queue: QueueState, heuristic: str) -> SiteState:
    return SiteState(
        now=queue.now,
        queue=queue,
        rules=SiteRules(
            limits=Limits(max_pending_requests=4, max_proc=512, max_tr=43_200),
            time_resolution=60,
            slot_margin=100,
            pad=30.0,
        ),
        heuristic=heuristic,
        demands=(Demand(waiting=10_000, runtime=1000.0, task=TaskSize(processors=1, memory=2 * GB)),),
    )


def look_and_decide(folder: Path, heuristics: Sequence[str], profiled: bool, decides: bool = True) -> None:
    cluster = _Cluster(folder)
    backend: BatchBackend[Any] = (
        SlurmBackend(SiteConfig(backend="slurm", partition="batch"), cluster)
        if folder.name == "slurm"
        else PbsBackend(SiteConfig(backend="pbs"), cluster)
    )
    queues: list[QueueState] = []

    def look() -> None:
        queues[:] = [backend.queue_state()]

    with (
        mock.patch.object(questions, "_unknown_to_jobs", return_value=MARK),
        mock.patch("time.time", return_value=float(NOW)),
    ):
        _spent("nothing", lambda: None, False)
        _spent("the first look", look, profiled)
        backend._shared.look.forget()
        cluster.look = 2
        _spent("the next look", look, profiled)
    (queue,) = queues
    print(f"{len(queue.running):,} running, {len(queue.pending):,} waiting, {len(queue.nodes):,} nodes")
    if not decides:
        return
    for heuristic in heuristics:
        view = _view(queue, heuristic)
        _spent(f"decision for a bag, {heuristic}", partial(plan, view), profiled)
    last = queue.pending[-1].id
    free = Availability(queue, noted=[last])
    _spent("plan of the queue", lambda: free.nodes, profiled)
    _spent("what the last job leaves if it goes", lambda: free.without(last).profile(), profiled)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.largest", description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=20_000)
    parser.add_argument("--waiting", type=int, default=50_000)
    parser.add_argument("--elements", type=int, default=1, help="of each waiting job, on Slurm")
    parser.add_argument("--schedulers", nargs="*", default=["slurm", "pbs"])
    parser.add_argument("--heuristics", nargs="*", default=["adaptive", "completion"])
    parser.add_argument("--looks", action="store_true", help="only the looks")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.read:
        look_and_decide(Path(asked.read), asked.heuristics, asked.profile, decides=not asked.looks)
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), asked.nodes, asked.running, asked.waiting, asked.elements)
        for kind in asked.schedulers:
            print(kind)
            command = [sys.executable, "-m", "bench.largest", "--read", f"{folder}/{kind}"]
            command += ["--heuristics", *asked.heuristics]
            command += [f"--{each}" for each in ("looks", "profile") if getattr(asked, each)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
