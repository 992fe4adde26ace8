"""Recorded answers, multiplied: the largest cluster at two looks, for `python -m bench.largest`."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence

from backends.slurm.fields import fold
from backends.slurm.parse import FREE_TEXTS, OF_ITS_KIND, OF_ONE_JOB
from tests.backends.pbs.openpbs_recordings import recorded
from tests.backends.slurm.answers import FIXTURES

MARK = "~" + "0" * 12
NOW = 1795370432
BETWEEN = 15
"""Seconds between the looks."""
_PROCESSORS, _MEMORY = 64, 256_000
_CHANGES = 50
"""Jobs that end between the looks, and that come."""
_ALIKE = 20
"""Waiting jobs in a row that ask for the same."""


class Job:
    """One of the cluster's; waiting ones have no nodes. Of `elements` that wait, Slurm prints one row."""

    elements = 1

    def __init__(self, draw: random.Random, id: int, nodes: Sequence[int], like: Job | None = None) -> None:
        self.id, self.nodes = id, nodes
        self.user: int = like.user if like else draw.randrange(500)
        self.minutes: int = like.minutes if like else draw.randint(5, 2880)
        self.processors: int = like.processors if like else draw.choice([1, 2, 4, 8, 16, 32, 64])
        self.wide: int = like.wide if like else len(nodes) or draw.choice([1, 1, 1, 2, 4, 16, 64])
        self.memory: int = like.memory if like else draw.choice([1000, 2000, 4000])
        self.started = NOW - draw.randrange(60 * self.minutes)

    def row(self) -> str:
        names, waits = fold(f"n{node:05}" for node in self.nodes), not self.nodes
        total = self.processors * self.wide
        values: dict[str, object] = dict.fromkeys((*OF_ONE_JOB, *OF_ITS_KIND, *FREE_TEXTS), "N/A")
        values |= {
            "JobArrayID": f"{self.id}_[1-{self.elements}]" if self.elements > 1 else self.id,
            "State": "PENDING" if waits else "RUNNING",
            "StartTime": "N/A" if waits else self.started,
            "EndTime": "N/A" if waits else self.started + 60 * self.minutes,
            "Partition": "batch", "NumCPUs": total, "NumNodes": self.wide,
            "TimeLimit": f"{self.minutes // 1440}-{self.minutes // 60 % 24:02}:{self.minutes % 60:02}:00",
            "NodeList": names, "SchedNodes": "(null)", "PriorityLong": 4_000_000 - self.id,
            "Reason": "Priority" if waits else "None", "Name": f"run-{self.user}", "Account": "physics",
            "WCKey": "(null)",
        }  # fmt: skip
        return (
            "".join(f"{value}{MARK if name in FREE_TEXTS else '|'}" for name, value in values.items()) + "\n"
        )

    def line(self, template: str, seen: int) -> str:
        """A line of `qstat -f -F dsv`. `template`: of a job that runs, or waits."""
        chunk = f"ncpus={self.processors}:mem={1024 * self.memory * self.processors}kb"
        names = [f"n{node:05}" for node in self.nodes]
        came = self.id % 5000 - 5000 + (self.started if names else NOW)
        values = {
            "Job_Name": f"run-{self.user}",
            "Job_Owner": f"user{self.user}@pbshead",
            "resources_used.walltime": _clock(seen - self.started),
            "eligible_time": _clock(seen - came),
            "exec_host": "+".join(f"{name}/0*{self.processors}" for name in names),
            "exec_vnode": "+".join(f"({name}:{chunk})" for name in names),
            "Resource_List.ncpus": str(self.processors * self.wide),
            "Resource_List.nodect": str(self.wide),
            "Resource_List.select": f"{self.wide}:{chunk}",
            "Resource_List.walltime": _clock(60 * self.minutes),
            **dict.fromkeys(("qtime", "etime", "ctime"), _ctime(came)),
            "stime": _ctime(self.started),
        }
        return re.sub("(?<=^Job Id: )[0-9]+", str(self.id), _filled(template, "=", values))

    def record(self, template: str, seen: int) -> str:
        names, total = fold(f"n{node:05}" for node in self.nodes), self.processors * self.wide
        array = f"ArrayJobId={self.id} ArrayTaskId=1-{self.elements} " if self.elements > 1 else ""
        for old, new in (
            ("JobId=1 JobName=uneven", f"JobId={self.id} {array}JobName=run-{self.user}"),
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


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _ctime(moment: int) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(moment))


class Look:
    """Jobs that are there at a look, and what is left of the nodes."""

    def __init__(self, number: int, seen: int, jobs: list[Job], left: list[int], memory: list[int]) -> None:
        self.seen, self.jobs, self.left, self.memory = seen, jobs, left, memory
        self.draw = random.Random(number)  # noqa: S311 (not for secrets)


def looks(nodes: int, running: int, waiting: int, elements: int = 1) -> Iterator[Look]:
    """Two: at the second the first 50 running jobs are gone, and 50 have come.

    Args:
        elements: of each waiting job.
    """
    draw = random.Random(1)  # noqa: S311 (not for secrets)
    left, memory = [_PROCESSORS] * nodes, [0] * nodes
    jobs: list[Job] = []
    while len(jobs) < running:
        drawn = draw.sample(range(nodes), draw.choice([1, 1, 1, 1, 2, 4]))
        there = sorted(node for node in drawn if left[node])
        if there:
            job = Job(draw, len(jobs) + 1, there)
            job.processors = min(job.processors, *(left[node] for node in there))
            for node in there:
                left[node] -= job.processors
                memory[node] += job.memory * job.processors
            jobs.append(job)
    for id in range(running + 1, running + waiting // elements + _CHANGES + 1):
        like = jobs[-1] if id % _ALIKE and not jobs[-1].nodes else None
        jobs.append(Job(draw, id, (), like))
        jobs[-1].elements = elements
    yield Look(1, NOW, jobs[:-_CHANGES], left, memory)
    for job in jobs[:_CHANGES]:
        for node in job.nodes:
            left[node] += job.processors
            memory[node] -= job.memory * job.processors
    yield Look(2, NOW + BETWEEN, jobs[_CHANGES:], left, memory)


def of_slurm(look: Look) -> dict[str, str]:
    """The answers of Slurm 26.05, by program or by what scontrol shows.

    Running jobs ran on, and the first 500 waiting ones were looked at since the look before.
    """
    answers = FIXTURES / "26.05"
    job_line, node_line = (
        (answers / f"{kind}_details.txt").read_text().split("\n")[0] for kind in ("job", "node")
    )
    running = sum(bool(job.nodes) for job in look.jobs)
    return {
        "squeue": "".join(job.row() for job in look.jobs),
        "job": "".join(
            job.record(job_line, look.seen if job.nodes or place < running + 500 else NOW)
            for place, job in enumerate(look.jobs)
        ),
        "sinfo": "".join(
            f"{partition}|up|n{node:05}|mixed|{_PROCESSORS - free}/{free}/0/{_PROCESSORS}|{_MEMORY}\n"
            for node, free in enumerate(look.left)
            for partition in ("batch*", "short")
        ),
        "node": "".join(
            node_line.replace("NodeName=n1 ", f"NodeName=n{node:05} ", 1)
            .replace("RealMemory=4000 AllocMem=100", f"RealMemory={_MEMORY} AllocMem={memory}", 1)
            .replace("CPULoad=12.77", f"CPULoad={look.draw.random():.2f}", 1)
            + "\n"
            for node, memory in enumerate(look.memory)
        ),
        "partition": (answers / "partitions.txt").read_text(),
        "config": (answers / "settings.txt").read_text(),
        "reservation": "No reservations in the system\n",
    }


def of_pbs(look: Look) -> dict[str, str]:
    """The answers of OpenPBS 23.06, by program and arguments. All running jobs ran on, all others waited."""
    lines = recorded("02-busy-qstat-f-dsv").split("\n")
    runs = next(line for line in lines if "job_state=R" in line)
    waits = next(line for line in lines if "Not enough free nodes" in line and "mem=" in line)
    waits = re.sub(r"\|estimated\.[^|]*", "", waits)
    node = next(
        block for block in recorded("02-busy-pbsnodes-av").split("\n\n") if block.startswith("node01")
    )
    there: list[list[str]] = [[] for _ in look.left]
    for job in look.jobs:
        for place in job.nodes:
            there[place].append(f"{job.id}.pbshead/0")
    return {
        "qstat --version": "pbs_version = 23.06.06\n",
        "qstat -B -f": recorded("02-busy-qstat-Bf"),
        "qstat -Q -f": recorded("02-busy-qstat-Qf"),
        "qstat -f -F dsv": "".join(
            job.line(runs if job.nodes else waits, look.seen) + "\n" for job in look.jobs
        ),
        "pbsnodes -a -v": "\n".join(
            _filled(
                node.replace("node01", f"n{place:05}"),
                " = ",
                {
                    "     jobs": ", ".join(there[place]),
                    "     resources_available.mem": f"{_MEMORY}mb",
                    "     resources_available.ncpus": str(_PROCESSORS),
                    "     resources_assigned.mem": f"{1024 * memory}kb",
                    "     resources_assigned.ncpus": str(_PROCESSORS - free),
                    "     state": "job-busy" if not free else "free",
                },
            )
            + "\n"
            for place, (free, memory) in enumerate(zip(look.left, look.memory, strict=True))
        ),
    }


def _filled(template: str, sign: str, values: Mapping[str, str]) -> str:
    """With these values in the place of those that were recorded; lines or fields, as the sign says."""
    end = "\n" if sign == " = " else "|"
    fields = (field.partition(sign) for field in template.split(end))
    return end.join(f"{name}{is_pair}{values.get(name, value)}" for name, is_pair, value in fields)
