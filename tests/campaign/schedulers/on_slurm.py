"""A campaign's view of a throwaway Slurm, with accounting or without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

import psutil

from tests.campaign.schedulers.cluster import PATIENCE, Cluster, Held, Job, is_ours, minutes
from tests.clusters.processes import step_processes
from tests.clusters.slurm import ThrowawaySlurm

DONATED_PARTITION = "scavenger"
_QUEUE = ("squeue", "-h", "-o", "%j|%i|%T|%C|%l|%P")
_SHOW = ("scontrol", "--oneliner", "show", "job")
_ACCOUNTED = "JobName,JobID,Start,End,AllocCPUS"
_SACCT = ("sacct", "-a", "-X", "-D", "-n", "-P", "-S", "now-2days", "-o", _ACCOUNTED)


class SlurmCluster(Cluster):
    def __init__(self, name: str, slurm: ThrowawaySlurm) -> None:
        self.name, self.slurm = name, slurm
        self.nodes = slurm.options.node_names
        self.site = "    backend: slurm\n    partition: batch\n"
        self.environment = slurm.env

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
    """Our requests in an output of `squeue -h -o %j|%i|%T|%C|%l|%P`."""
    for line in text.splitlines():
        tag, id, state, processors, limit, partition = line.rsplit("|", 5)
        if is_ours(tag):
            donated = partition == DONATED_PARTITION
            yield Job(id, tag, int(processors), minutes(limit), donated, state == "COMPLETING")


def remembered(text: str) -> Iterator[Held]:
    """Of an output of `scontrol --oneliner show job`, which has the processors only that a job had last."""
    for line in text.splitlines():
        job = dict(re.findall(r"(\w+)=(\S+)", line))
        tag, start, end = (job.get(key, "Unknown") for key in ("JobName", "StartTime", "EndTime"))
        if is_ours(tag) and "Unknown" not in (start, end):
            yield Held(tag, _between(start, end), None)


def accounted(text: str) -> Iterator[Held]:
    """Of the rows of sacct: one for each size that a job had, the first one first."""
    rows: dict[tuple[str, str], list[list[str]]] = {}
    for line in text.splitlines():
        tag, id, *row = line.rsplit("|", 4)
        rows.setdefault((tag, id), []).append(row)
    for (tag, _), sizes in rows.items():
        start, end = sizes[0][0], sizes[-1][1]
        if is_ours(tag) and not {"Unknown", "None"} & {start, end}:
            yield Held(tag, _between(start, end), int(sizes[0][2]))


def _between(start: str, end: str) -> float:
    begun, ended = datetime.fromisoformat(start), datetime.fromisoformat(end)
    return max(0.0, (ended - begun).total_seconds())


def _of_a_pilot(step: psutil.Process) -> bool:
    try:
        return any(is_ours(child.environ().get("SLURM_JOB_NAME", "")) for child in step.children())
    except psutil.Error:
        return False
