"""A campaign's view of a throwaway Slurm, with accounting or without."""

from __future__ import annotations

import getpass
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import psutil

from backends.arrays import tag_of
from lab.campaign.schedulers.cluster import (
    ELEMENTS,
    MINE,
    PATIENCE,
    Cluster,
    Held,
    Job,
    is_ours,
    minutes,
)
from tests.clusters.processes import step_processes
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.wrong_answers import ANSWERS, WrongAnswers

DONATED_PARTITION = "scavenger"
_QUEUE = ("squeue", "-h", "-r", "-o", "%j|%i|%T|%C|%l|%P")
_SHOW = ("scontrol", "--oneliner", "show", "job")
USER = getpass.getuser()
ACCOUNTS = (
    *(f"add account {name} Description=x Organization=x parent={above}"
      for name, above in (("lab", "root"), ("phys", "lab"))),
    f"add user {USER} account=phys DefaultAccount=phys",
)  # fmt: skip
LIMITS = (
    ("account lab", "GrpTRES=cpu=6"),
    ("account lab", "GrpTRES=node=1"),
    ("account lab", "GrpTRESRunMins=cpu=20"),
    ("account lab", "GrpTRESRunMins=billing=20"),
    ("account lab", "GrpTRESMins=cpu=0"),
    ("account lab", "GrpWall=0"),
    ("account lab", "GrpJobs=2"),
    ("account lab", "GrpSubmitJobs=5"),
    (f"user {USER}", "MaxTRESMinsPerJob=cpu=3"),
    (f"user {USER}", "MaxWallDurationPerJob=2"),
    ("qos normal", "MaxTRESPerUser=cpu=6"),
    ("qos normal", "MaxJobsPerUser=3"),
    ("qos normal", "MaxSubmitJobsPerUser=4"),
    ("qos normal", "MaxWall=1"),
)
"""Account or user, and limit: `-1` lifts each."""
_ACCOUNTED = "JobName,JobID,Start,End,AllocCPUS"
_SACCT = ("sacct", "-a", "-X", "-D", "-n", "-P", "-S", "now-2days", "-o", _ACCOUNTED)


class SlurmCluster(Cluster):
    def __init__(self, name: str, slurm: ThrowawaySlurm) -> None:
        self.name, self.slurm = name, slurm
        self.nodes = slurm.options.node_names
        self.site = "    backend: slurm\n    partition: batch\n"
        self._answers = WrongAnswers(slurm.root / "front")
        self.environment = {**slurm.env, "PATH": self._answers.path}
        self._mine: set[str] = set()

    def start_controller(self) -> None:
        self.slurm.start_controller()

    def stop_controller(self, *, kill: bool = False) -> None:
        self.slurm.stop_controller(kill=kill)

    def controller(self) -> psutil.Process | None:
        return self.slurm.daemon("slurmctld")

    def start_node(self, node: str) -> None:
        self.slurm.start_node(node)

    def kill_node_daemon(self, node: str) -> None:
        self.slurm.kill_node_daemon(node)

    def stop_node(self, node: str) -> None:
        self.slurm.stop_node(node)

    def node_daemon(self, node: str) -> psutil.Process | None:
        return self.slurm.daemon(f"slurmd.{node}")

    def drain(self, node: str) -> None:
        self._run("scontrol", "update", f"nodename={node}", "state=drain", "reason=campaign")

    def resume(self, node: str) -> None:
        if "drain" in self._run("sinfo", "-h", "-n", node, "-o", "%T"):
            self._run("scontrol", "update", f"nodename={node}", "state=resume")

    def cancel(self, job: str) -> None:
        self._run("scancel", job)

    def queue(self) -> list[Job]:
        return list(queued(self._run(*_QUEUE)))

    def records(self) -> list[Held]:
        """From sacct where there is accounting, else from what slurmctld remembers."""
        if self.slurm.options.accounting:
            return list(accounted(self._run(*_SACCT)))
        return list(remembered(self._run(*_SHOW)))

    def back_up(self) -> None:
        self.slurm.stop_controller()
        shutil.rmtree(self._backup, ignore_errors=True)
        shutil.copytree(self._state, self._backup)
        self.slurm.start_controller()

    def restore(self) -> None:
        last = self.slurm.last_job()
        self.slurm.stop_controller(kill=True)
        shutil.rmtree(self._state)
        shutil.copytree(self._backup, self._state)
        self.slurm.start_controller()
        hold = ["--parsable", "--hold", f"--array=0-{ELEMENTS - 1}", f"--job-name={MINE}"]
        while self.slurm.last_job() < last:
            number = self._run("sbatch", *hold, "-o/dev/null", "--wrap", "sleep 60").strip()
            self._mine |= {f"{number}_{index}" for index in range(ELEMENTS)}
        self.slurm.stop_controller()  # which writes down what it knows
        self.slurm.start_controller()

    def touched(self) -> list[str]:
        rows = self._run("squeue", "-h", "-r", "-t", "PD", "-n", MINE, "-o", "%i").split()
        return sorted(self._mine.difference(rows))

    def answer_wrongly(self, draw: float) -> tuple[str, str]:
        program, answer = ANSWERS[int(draw * len(ANSWERS))]
        self._answers.begin(program, answer)
        return program, answer

    def answer_rightly(self, command: str) -> None:
        self._answers.end(command)

    def limit_account(self, draw: float) -> tuple[str, str]:
        of, limit = LIMITS[int(draw * len(LIMITS))]
        self._run("sacctmgr", "-i", "modify", *of.split(), "set", limit)
        return of, limit

    def lift_limit(self, of: str, limit: str) -> None:
        self._run("sacctmgr", "-i", "modify", *of.split(), "set", f"{limit.rpartition('=')[0]}=-1")

    @property
    def _state(self) -> Path:
        return self.slurm.root / "state"

    @property
    def _backup(self) -> Path:
        return self.slurm.root / "backup"

    def stop_accounting(self) -> None:
        self.slurm.stop_accounting()

    def start_accounting(self) -> None:
        self.slurm.start_accounting()

    def steps(self) -> Iterator[psutil.Process]:
        homes = [self.slurm.home(f"slurmd.{node}") for node in self.nodes]
        yield from (step for step in step_processes(homes) if _of_a_pilot(step))

    def _run(self, *command: str) -> str:
        return self.slurm.run(command, timeout=PATIENCE)


def queued(text: str) -> Iterator[Job]:
    """Our requests in an output of `squeue -h -r -o %j|%i|%T|%C|%l|%P`."""
    for line in text.splitlines():
        name, id, state, processors, limit, partition = line.rsplit("|", 5)
        tag = _tag(name, id)
        if is_ours(tag):
            donated = partition == DONATED_PARTITION
            yield Job(id, tag, int(processors), minutes(limit), donated, state == "COMPLETING")


def remembered(text: str) -> Iterator[Held]:
    """Holdings by `scontrol --oneliner show job`, which has only the last processors of a job."""
    for line in text.splitlines():
        job = dict(re.findall(r"(\w+)=(\S+)", line))
        name, start, end = (job.get(key, "Unknown") for key in ("JobName", "StartTime", "EndTime"))
        tag = _tag(name, f"_{job.get('ArrayTaskId', '')}")
        if is_ours(tag) and "Unknown" not in (start, end):
            yield Held(tag, _between(start, end), None)


def accounted(text: str) -> Iterator[Held]:
    """Holdings by the rows of sacct: one for each size that a job had, the first one first."""
    rows: dict[tuple[str, str], list[list[str]]] = {}
    for line in text.splitlines():
        name, id, *row = line.rsplit("|", 4)
        rows.setdefault((_tag(name, id), id), []).append(row)
    for (tag, _), sizes in rows.items():
        start, end = sizes[0][0], sizes[-1][1]
        if is_ours(tag) and not {"Unknown", "None"} & {start, end}:
            yield Held(tag, _between(start, end), int(sizes[0][2]))


def _tag(name: str, id: str) -> str:
    """Tag of a job, or of the element of an array that `12_3` is."""
    index = id.partition("_")[2]
    return tag_of(name, int(index)) if index.isdecimal() else name


def _between(start: str, end: str) -> float:
    begun, ended = datetime.fromisoformat(start), datetime.fromisoformat(end)
    return max(0.0, (ended - begun).total_seconds())


def _of_a_pilot(step: psutil.Process) -> bool:
    try:
        return any(is_ours(child.environ().get("SLURM_JOB_NAME", "")) for child in step.children())
    except psutil.Error:
        return False
