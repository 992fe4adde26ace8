"""`python -m bench.largest`: a look at the largest cluster, and the decision on it.

Answers of Slurm 26.05 that were recorded are multiplied: 10,000 nodes of 64 processors in two partitions,
20,000 running and 50,000 waiting jobs of 500 users, of which twenty in a row ask for the same. The next
answer is that of 15 s later: all running jobs ran on, the first 500 waiting jobs were looked at again, 50
jobs have ended and 50 came. Processor seconds and memory are those of a process that only reads and decides.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from unittest import mock

from adaptor.config.schema import SiteConfig
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, PlanningView, SiteRules
from adaptor.model import Limits, QueueState
from adaptor.resources import TaskSize
from backends.commands import CommandAnswer
from backends.machines.here import Here
from backends.slurm import questions
from backends.slurm.backend import SlurmBackend
from backends.slurm.fields import fold
from backends.slurm.parse import QUEUE_FIELDS
from tests.backends.slurm.answers import FIXTURES

_MARK = "~" + "0" * 12
_NOW = 1795370432
_PROCESSORS, _MEMORY = 64, 256_000
_ALIKE = 20
"""Waiting jobs in a row that ask for the same."""
GB = 2**30


class _Job:
    """One of the cluster's; waiting ones have no nodes."""

    def __init__(self, draw: random.Random, id: int, nodes: Sequence[int], like: _Job | None = None) -> None:
        self.id, self.nodes = id, nodes
        self.user = like.user if like else draw.randrange(500)
        self.minutes = like.minutes if like else draw.randint(5, 2880)
        self.processors = like.processors if like else draw.choice([1, 2, 4, 8, 16, 32, 64])
        self.wide = like.wide if like else len(nodes) or draw.choice([1, 1, 1, 2, 4, 16, 64])
        self.memory = like.memory if like else draw.choice([1000, 2000, 4000])
        self.started = _NOW - draw.randrange(60 * self.minutes)

    def row(self) -> str:
        names, waits = fold(f"n{node:05}" for node in self.nodes), not self.nodes
        total = self.processors * self.wide
        values: dict[str, object] = dict.fromkeys(QUEUE_FIELDS, "N/A")
        values |= {
            "JobArrayID": self.id, "State": "PENDING" if waits else "RUNNING",
            "StartTime": "N/A" if waits else self.started,
            "EndTime": "N/A" if waits else self.started + 60 * self.minutes,
            "Partition": "batch", "NumCPUs": total, "NumNodes": self.wide,
            "TimeLimit": f"{self.minutes // 1440}-{self.minutes // 60 % 24:02}:{self.minutes % 60:02}:00",
            "NodeList": names, "SchedNodes": "(null)", "PriorityLong": 4_000_000 - self.id,
            "Reason": "Priority" if waits else "None", "Name": f"run-{self.user}", "Account": "physics",
            "WCKey": "(null)",
        }  # fmt: skip
        return "".join(f"{value}{_MARK}" for value in values.values()) + "\n"

    def record(self, template: str, seen: int) -> str:
        names, total = fold(f"n{node:05}" for node in self.nodes), self.processors * self.wide
        for old, new in (
            ("JobId=1 JobName=uneven", f"JobId={self.id} JobName=run-{self.user}"),
            ("UserId=root(0)", f"UserId=user{self.user}({1000 + self.user})"),
            ("Account=(null)", "Account=physics"),
            ("RunTime=00:00:02", f"RunTime={seen - self.started if self.nodes else 0}"),
            ("LastSchedEval=1795370430", f"LastSchedEval={seen}"),
            ("NumNodes=2 NumCPUs=8 NumTasks=8", f"NumNodes={self.wide} NumCPUs={total} NumTasks={total}"),
            ("ReqNodeList=n[3-4]", "ReqNodeList=(null)"),
            ("MinMemoryCPU=100M", f"MinMemoryCPU={self.memory}M"),
            (" NodeList=n[3-4]", f" NodeList={names}"),
            (
                "Nodes=n[3-4] CPU_IDs=0-3 Mem=400 GRES=",
                f"Nodes={names} CPU_IDs=0-{self.processors - 1} Mem={self.memory * self.processors} GRES="
                if self.nodes
                else "",
            ),
            *(() if self.nodes else (("JobState=RUNNING Reason=None", "JobState=PENDING Reason=Priority"),)),
        ):
            template = template.replace(old, new, 1)
        return template + "\n"


def write(folder: Path, nodes: int, running: int, waiting: int) -> None:
    """The answers to both looks, as files."""
    draw = random.Random(1)  # noqa: S311 (not for secrets)
    recorded = FIXTURES / "26.05"
    left, memory = [_PROCESSORS] * nodes, [0] * nodes
    jobs: list[_Job] = []
    while len(jobs) < running:
        drawn = draw.sample(range(nodes), draw.choice([1, 1, 1, 1, 2, 4]))
        there = sorted(node for node in drawn if left[node])
        if there:
            job = _Job(draw, len(jobs) + 1, there)
            job.processors = min(job.processors, *(left[node] for node in there))
            for node in there:
                left[node] -= job.processors
                memory[node] += job.memory * job.processors
            jobs.append(job)
    for id in range(running + 1, running + waiting + 51):
        like = jobs[-1] if id % _ALIKE and not jobs[-1].nodes else None
        jobs.append(_Job(draw, id, (), like))
    job_line = (recorded / "job_details.txt").read_text().split("\n")[0]
    node_line = (recorded / "node_details.txt").read_text().split("\n")[0]
    for number, (look, there) in enumerate(((folder / "1", jobs[:-50]), (folder / "2", jobs[50:]))):
        look.mkdir(parents=True)
        for job in jobs[: 50 * number]:
            for node in job.nodes:
                left[node] += job.processors
                memory[node] -= job.memory * job.processors
        (look / "squeue").write_text("".join(job.row() for job in there))
        (look / "job").write_text(
            "".join(
                job.record(job_line, _NOW + 15 * number * bool(job.nodes or place < running + 500))
                for place, job in enumerate(there)
            )
        )
        (look / "sinfo").write_text(
            "".join(
                f"{partition}|up|n{node:05}|mixed|{_PROCESSORS - free}/{free}/0/{_PROCESSORS}|{_MEMORY}\n"
                for node, free in enumerate(left)
                for partition in ("batch*", "short")
            )
        )
        (look / "node").write_text(
            "".join(
                node_line.replace("NodeName=n1 ", f"NodeName=n{node:05} ", 1)
                .replace("RealMemory=4000 AllocMem=100", f"RealMemory={_MEMORY} AllocMem={memory[node]}", 1)
                .replace("CPULoad=12.77", f"CPULoad={draw.random():.2f}", 1)
                + "\n"
                for node in range(nodes)
            )
        )
        for kind, question in (("partition", "partitions"), ("config", "settings")):
            (look / kind).write_text((recorded / f"{question}.txt").read_text())
        (look / "reservation").write_text("No reservations in the system\n")


class _Cluster(Here):
    """Answers from the files of a look."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.look = folder, 1

    def variables(self) -> dict[str, str]:
        return {"LOGNAME": "alice"}

    def run(self, arguments: Sequence[str], variables: Mapping[str, str], timeout: float) -> CommandAnswer:  # noqa: ARG002
        program, *words = arguments
        path = self.folder / str(self.look) / (words[1] if program == "scontrol" else program)
        return CommandAnswer(0, path.read_text(), "")


def _spent(what: str, step: Callable[[], object], profiled: bool) -> None:
    begin = time.process_time()
    if profiled:
        profile = cProfile.Profile()
        profile.runcall(step)
        pstats.Stats(profile).sort_stats("tottime").print_stats(18)
    else:
        step()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1000
    print(f"{what:45} {time.process_time() - begin:7.2f} s   peak {peak:5.0f} MB", flush=True)


def _view(queue: QueueState, heuristic: str) -> PlanningView:
    return PlanningView(
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


def look_and_decide(folder: Path, profiled: bool) -> None:
    cluster = _Cluster(folder)
    backend = SlurmBackend(SiteConfig(backend="slurm", partition="batch"), cluster)
    queues: list[QueueState] = []

    def look() -> None:
        queues[:] = [backend.queue_state()]

    with (
        mock.patch.object(questions, "_unknown_to_jobs", return_value=_MARK),
        mock.patch("time.time", return_value=float(_NOW)),
    ):
        _spent("nothing", lambda: None, False)
        _spent("the first look", look, profiled)
        backend._shared.look.forget()
        cluster.look = 2
        _spent("the next look", look, profiled)
    (queue,) = queues
    print(f"{len(queue.running):,} running, {len(queue.pending):,} waiting, {len(queue.nodes):,} nodes")
    for heuristic in ():
        view = _view(queue, heuristic)
        _spent(f"decision for a bag, {heuristic}", partial(plan, view), profiled)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.largest", description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=20_000)
    parser.add_argument("--waiting", type=int, default=50_000)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.read:
        look_and_decide(Path(asked.read), asked.profile)
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), asked.nodes, asked.running, asked.waiting)
        command = [sys.executable, "-m", "bench.largest", "--read", folder]
        subprocess.run([*command, "--profile"] if asked.profile else command, check=True)


if __name__ == "__main__":
    main()
