"""A campaign's view of a throwaway OpenPBS."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil

from backends.arrays import tag_of
from backends.pbs.fields import element_index, parse_dsv
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
from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.living import until


class OpenPbsCluster(Cluster):
    def __init__(self, name: str, pbs: ThrowawayOpenPbs) -> None:
        self.name, self.pbs = name, pbs
        self.nodes = pbs.nodes
        self.site = "    backend: pbs\n    partition: workq\n"
        self.environment = pbs.env
        self.address = pbs.network.address
        self._mine: set[str] = set()

    def start_controller(self) -> None:
        self.pbs.start_server()

    def stop_controller(self, *, kill: bool = False) -> None:
        self.pbs.stop_server(kill=kill)

    def controller(self) -> psutil.Process | None:
        return self.pbs.daemon("pbs_server")

    def start_node(self, node: str) -> None:
        self.pbs.start_mom(node)

    def kill_node_daemon(self, node: str) -> None:
        self.pbs.stop_mom(node)

    def stop_node(self, node: str) -> None:
        self.pbs.stop_node(node)

    def node_daemon(self, node: str) -> psutil.Process | None:
        return self.pbs.daemon(node)

    def drain(self, node: str) -> None:
        self._run("pbsnodes", "-o", node)

    def resume(self, node: str) -> None:
        self._run("pbsnodes", "-r", node)

    def cut(self, node: str) -> None:
        self.pbs.network.cut(node)

    def connect(self, node: str) -> None:
        self.pbs.network.connect(node)

    def cancel(self, job: str) -> None:
        self._run("qdel", job)

    def queue(self) -> list[Job]:
        return list(queued(self._run("qstat", "-t", "-f", "-F", "dsv")))

    def records(self) -> Iterator[Held]:
        for log in sorted((self.pbs.root / "head" / "server_priv" / "accounting").iterdir()):
            yield from accounted(log.read_text(errors="replace"))

    def back_up(self) -> None:
        self._stop_with_database()
        shutil.rmtree(self._backup, ignore_errors=True)
        subprocess.run(["cp", "-a", self._database, self._backup], check=True)
        self.pbs.start_server()

    def restore(self) -> None:
        last = max(self._numbers("-x"), default=-1)
        self._stop_with_database()
        shutil.rmtree(self._database)
        subprocess.run(["cp", "-a", self._backup, self._database], check=True)
        self.pbs.start_server()
        hold = ["-h", "-N", MINE, "-J", f"0-{ELEMENTS - 1}", "-o", "/dev/null", "-j", "oe"]
        number = -1
        while number < last:
            array = self._run("qsub", *hold, "--", "/bin/sleep", "60").strip()
            number = int(array.partition("[")[0])
            self._mine.add(array)

    def touched(self) -> list[str]:
        if not self._mine:
            return []
        shown = parse_dsv(self._run("qstat", "-f", "-F", "dsv", *sorted(self._mine)), "Job Id: ")
        whole = {each.id for each in shown if f"Queued:{ELEMENTS} " in each.values["array_state_count"]}
        return sorted(self._mine - whole)

    @property
    def _database(self) -> Path:
        return self.pbs.root / "head" / "datastore"

    @property
    def _backup(self) -> Path:
        return self.pbs.root / "backup"

    def _stop_with_database(self) -> None:
        self.pbs.stop_server(kill=False)
        until(lambda: not (self._database / "postmaster.pid").exists(), "the database has ended")

    def _numbers(self, *options: str) -> list[int]:
        ids = self._run("qselect", *options).split()
        return [int(number) for id in ids if (number := re.split(r"[.[]", id)[0]).isdecimal()]

    def _run(self, *command: str) -> str:
        return self.pbs.run(command, timeout=PATIENCE)


def queued(text: str) -> Iterator[Job]:
    """Our requests in an output of `qstat -t -f -F dsv`, elements of arrays one by one."""
    for record in parse_dsv(text, "Job Id: "):
        values = record.values
        tag = _tag(values.get("Job_Name", ""), record.id)
        if is_ours(tag) and "[]" not in record.id and values["job_state"] not in "FX":
            yield Job(
                record.id,
                tag,
                int(values["Resource_List.ncpus"]),
                minutes(values["Resource_List.walltime"]),
                leaves=values["job_state"] == "E",
            )


def accounted(text: str) -> Iterator[Held]:
    """Holdings by PBS's accounting log: its records of ends."""
    for line in text.splitlines():
        _, kind, id, said = line.split(";", 3)
        job = dict(re.findall(r"(\S+?)=(\S+)", said)) if kind == "E" else {}
        tag = _tag(job.get("jobname", ""), id)
        if is_ours(tag) and "[]" not in id:
            processors = int(job["Resource_List.ncpus"])
            yield Held(tag, float(job["end"]) - float(job["start"]), processors)


def _tag(name: str, id: str) -> str:
    """Tag of a job, or of the element of an array that `12[3].head` is."""
    return tag_of(name, element_index(id)) if re.search(r"\[\d", id) else name
