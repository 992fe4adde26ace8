"""A bag of twelve tasks on a real Slurm under each limit of nodes, partitions, accounts and QOS.

    python -m lab.campaign.allowances

prints a line for each: when the first pilot started, how many requests it took, and what the pilots were
charged, beside what slurmctld or, where there is accounting, sacct recorded. `--only WORD`: those with it in
their names.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from adaptor.budget.accounting.entries import Reserved
from adaptor.journal.credits import entries
from lab.campaign.credits import check_credits
from lab.campaign.schedulers.on_slurm import ACCOUNTS as LAB
from lab.campaign.schedulers.on_slurm import USER, SlurmCluster
from tests.clusters import slurm_accounting
from tests.clusters.slurm import ThrowawaySlurm, available
from tests.clusters.slurm_conf import (
    ACCOUNTS,
    CORES,
    MIXED,
    ONE_TASK,
    SOCKETS,
    THREADS,
    WHOLE_SOCKETS,
    ClusterOptions,
)
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

TASKS = 12
PATIENCE = 60.0
"""Seconds for a bag of tasks of a second."""

OF_LAB, OF_USER, OF_QOS = "account lab", f"user {USER}", "qos normal"
"""The account above that of the user; the user; the QOS of its jobs."""

RIGS: dict[str, ClusterOptions] = {
    "CR_Core": CORES,
    "CR_Core,CR_ONE_TASK_PER_CORE": ONE_TASK,
    "CR_CPU, threads": THREADS,
    "two sockets": SOCKETS,
    "CR_Socket": WHOLE_SOCKETS,
    "accounts": replace(ACCOUNTS, accounts=LAB),
    "accounts, memory": replace(ACCOUNTS, accounts=LAB, select="CR_CPU_Memory"),
    "accounts, GPUs": replace(
        ACCOUNTS,
        accounts=LAB,
        node_settings={"n3": "CPUs=4 Gres=gpu:2", "n4": "CPUs=4 Gres=gpu:2"},
        gres=(
            MIXED.gres[0],
            "NodeName=n4 Name=gpu File=/dev/tty[3-4]",
        ),
        extra=(*ACCOUNTS.extra, "GresTypes=gpu", "AccountingStorageTRES=gres/gpu"),
    ),
}


@dataclass(frozen=True)
class Case:
    """One configuration."""

    rig: str
    partition: str = "batch"
    limit: tuple[str, str] = ("", "")
    """Account or user, and limit, in the words of sacctmgr."""
    options: tuple[str, ...] = ()
    """Options of the bag."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the site."""
    most: int = 16
    """Processors of one pilot at most."""
    since: tuple[int, int] = (0, 0)
    """The release of Slurm that has it first."""

    @property
    def name(self) -> str:
        keys = [f"{key}: {value}" for key, value in self.keys.items()]
        parts = [self.partition, *self.limit, *self.options, *keys]
        return " ".join([f"{self.rig}:", *filter(None, parts)])


_WHOLE = {"whole_nodes": True, "processors_per_node": 8}
_NODES = (
    ("batch", (), {}, 16),
    ("batch", (), {"extra_args": ["--hint=nomultithread"]}, 16),
    ("memory", ("--mem", "500M"), {}, 16),  # three processors for the memory of each task, so two cores
    ("half", (), {}, 4),
    ("wide", (), {}, 16),
    ("whole", (), _WHOLE, 16),
)
_OF_ACCOUNTS = (
    (OF_LAB, "GrpTRES=cpu=4"),
    (OF_LAB, "GrpTRES=node=1"),
    (OF_LAB, "GrpTRESRunMins=cpu=20"),
    (OF_LAB, "GrpTRESRunMins=billing=20"),
    (OF_QOS, "GrpTRESRunMins=cpu=20"),
    (OF_LAB, "GrpTRESMins=billing=500"),
    (OF_LAB, "GrpWall=500"),
    (OF_LAB, "GrpJobs=1"),
    (OF_LAB, "GrpSubmitJobs=1"),
    (OF_LAB, "MaxWallDurationPerJob=1"),
    (OF_LAB, "MaxTRESPerJob=cpu=2"),
    (OF_USER, "MaxJobs=2"),
    (OF_USER, "MaxTRESMinsPerJob=cpu=3"),
    (OF_LAB, "MaxTRESPerJob=billing=2"),
    (OF_LAB, "GrpTRES=billing=3"),
    (OF_QOS, "MinTRESPerJob=cpu=4"),
    (OF_QOS, "MinTRESPerJob=node=2"),
    (OF_QOS, "MinTRESPerJob=billing=3"),
    (OF_QOS, "MaxTRESPerNode=cpu=2"),
    (OF_QOS, "MaxTRESPerUser=cpu=3"),
    (OF_QOS, "MaxTRESPerUser=node=1"),
    (OF_QOS, "MaxTRESPerAccount=cpu=3"),
    (OF_QOS, "MaxJobsPerUser=1"),
    (OF_QOS, "MaxJobsPerAccount=1"),
    (OF_QOS, "MaxSubmitJobsPerAccount=1"),
    (OF_QOS, "MaxSubmitJobsPerUser=2"),
    (OF_QOS, "GrpTRES=cpu=5"),
    (OF_QOS, "GrpJobs=1"),
    (OF_QOS, "MaxTRESMinsPerJob=cpu=4"),
    (OF_QOS, "MaxWall=1"),
)
_OF_MEMORY = (
    (OF_LAB, "MaxTRESPerJob=mem=500"),
    (OF_LAB, "GrpTRES=mem=1500"),
    (OF_QOS, "MaxTRESPerUser=mem=700"),
    (OF_QOS, "MaxTRESPerNode=mem=800"),
    (OF_QOS, "MinTRESPerJob=mem=3000"),
)
"""Below, or above, the 1000 MB that a processor gets there."""
_OF_GPUS = (
    (OF_LAB, "GrpTRES=gres/gpu=1"),
    (OF_LAB, "MaxTRESPerJob=gres/gpu=2"),
    (OF_QOS, "MaxTRESPerUser=gres/gpu=1"),
    (OF_QOS, "MinTRESPerJob=gres/gpu=2"),
)
CASES = (
    *(
        Case(rig, partition, options=options, keys=keys, most=most)
        for rig in list(RIGS)[:3]
        for partition, options, keys, most in _NODES
    ),
    Case("two sockets"),
    Case("two sockets", "socket", most=8, since=(23, 2)),
    Case("two sockets", "socket", options=("--cpus", "3"), most=8, since=(23, 2)),
    Case("CR_Socket"),
    Case("CR_Socket", "memory", options=("--mem", "500M")),
    Case("CR_Socket", "wide"),
    *(Case("accounts", limit=limit) for limit in _OF_ACCOUNTS),
    *(Case("accounts, memory", limit=limit) for limit in _OF_MEMORY),
    Case("accounts, memory", limit=_OF_MEMORY[0], options=("--mem", "300M")),
    *(Case("accounts, GPUs", limit=limit, options=("--gpus", "1")) for limit in _OF_GPUS),
    Case("accounts", limit=(OF_LAB, "GrpTRESRunMins=cpu=60"), keys={"initial_tr": "30m"}),
)


@dataclass(frozen=True)
class Ran:
    """Figures of a bag."""

    pilots: list[dict[str, Any]]
    started: float
    """Seconds from its submission to its first pilot."""
    held: float
    """Processor-seconds of its pilots."""
    recorded: float
    """The same by Slurm's records."""
    wrong: list[str]
    """Differences of more than a second between the two."""


@contextmanager
def limited(slurm: ThrowawaySlurm, limit: tuple[str, str]) -> Iterator[None]:
    """While it is in force; `("", "")`: none."""
    of, bound = limit
    if not of:
        yield
        return
    slurm.run(["sacctmgr", "-i", "modify", *of.split(), "set", bound])
    try:
        yield
    finally:
        slurm.run(["sacctmgr", "-i", "modify", *of.split(), "set", f"{bound.rpartition('=')[0]}=-1"])


def release() -> tuple[int, ...]:
    """Release of the Slurm of this machine: `(22, 5)`."""
    program = shutil.which("slurmctld", path=slurm_accounting.SEARCH_PATH) or "slurmctld"
    said = subprocess.run([program, "-V"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, said.split()[-1].split(".")[:2]))


def options_of(rig: str) -> ClusterOptions:
    """With accounting, where it can be had, and without partitions that this Slurm does not know."""
    options, late = (
        RIGS[rig],
        {case.partition for case in CASES if case.rig == rig and case.since > release()},
    )
    options = replace(options, partitions=tuple(each for each in options.partitions if each.name not in late))
    if slurm_accounting.available() is None:
        return options
    return replace(options, accounting=False, accounts=(), extra=())


def run(cluster: SlurmCluster, lab: Lab, case: Case, seconds: float = 1) -> Ran:
    """Run the bag, on a cluster of which $SLURM_CONF tells. Raises AssertionError: it did not run well."""
    with limited(cluster.slurm, case.limit):
        lab.configure(
            site(
                "slurm", **{"partition": case.partition, "initial_tr": "10s", "idle_timeout": 5, **case.keys}
            )
        )
        checked = lab.run("site", "check").stdout
        assert "error" not in checked, checked
        lab.bag([f"sleep {seconds:g}"] * TASKS)
        begun = time.time()
        lab.submit("tasks.bag", *case.options)
        try:
            lab.wait(timeout=PATIENCE)
        except AssertionError as problem:
            why = lab.run("why", "1").stdout
            raise AssertionError(f"{problem}\n{why}\n{slurm_says(cluster.slurm)}") from None
        exactly_one_result_each(lab, 1, TASKS)
        until(lambda: all(pilot["ended"] for pilot in lab.pilots()), "all pilots have ended")
        pilots = lab.pilots()
        lab.run("daemon", "stop")
    until(lambda: not cluster.queue(), "all pilots have left")
    return Ran(pilots, *_counted(lab, cluster, begun))


def _counted(lab: Lab, cluster: SlurmCluster, begun: float) -> tuple[float, float, float, list[str]]:
    journal = lab.state / "journal.sqlite"
    with closing(sqlite3.connect(journal)) as db:
        got = {entry.pilot: entry.p for entry in entries(db) if isinstance(entry, Reserved)}
        found = db.execute("SELECT id, tag, started, ended FROM pilot WHERE started IS NOT NULL").fetchall()
    rows = [(tag, got[id], started, ended) for id, tag, started, ended in found]
    until(lambda: {tag for tag, *_ in rows} <= {held.tag for held in cluster.records()}, "Slurm recorded all")
    records = {held.tag: held for held in cluster.records()}
    held = sum(p * (ended - started) for _, p, started, ended in rows)
    recorded = sum((records[tag].processors or p) * records[tag].seconds for tag, p, *_ in rows)
    first = min((started for _, _, started, _ in rows), default=begun) - begun
    return first, held, recorded, [str(each) for each in check_credits(journal, records.values())]


def slurm_says(slurm: ThrowawaySlurm) -> str:
    return slurm.run(["squeue", "-a", "-r", "-t", "all", "-o", "%i %j %T %r %C %D %l"])


def why_not(slurm: ThrowawaySlurm, case: Case) -> str:
    """Why a case cannot be tried on this cluster; empty: it can."""
    if release() < case.since:
        return "this Slurm does not have it"
    return "" if not case.limit[0] or slurm.options.accounting else "no slurmdbd"


def line_of(case: Case, ran: Ran) -> str:
    widest = max((pilot["held"] for pilot in ran.pilots if pilot["started"]), default=0)
    cells = [
        case.name,
        f"{ran.started:.0f} s",
        f"{len(ran.pilots)}",
        f"{widest}",
        f"{ran.held:.0f}",
        f"{ran.recorded:.0f}",
        f"{len(ran.wrong)}: {ran.wrong[0]}" if ran.wrong else "none",
    ]
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| configuration | started after | requests | widest pilot | charged, processor-seconds | recorded | "
    "differ |\n|---|---|---|---|---|---|---|"
)


def main(arguments: Sequence[str] | None = None, tell: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.campaign.allowances", description=__doc__)
    parser.add_argument("--only", default="", help="those with this word in their names")
    parser.add_argument("--heuristic", help="of the site (default: the default)")
    chosen = parser.parse_args(arguments)
    if reason := available():
        print(reason, file=sys.stderr)
        return 2
    tell(HEAD)
    well = True
    keys = {"heuristic": chosen.heuristic} if chosen.heuristic else {}
    cases = [replace(case, keys={**case.keys, **keys}) for case in CASES if chosen.only in case.name]
    for rig, several in groupby(cases, key=lambda case: case.rig):
        with ThrowawaySlurm(options_of(rig)) as slurm:
            os.environ.update(slurm.env)
            cluster = SlurmCluster("hpc", slurm)
            for case in several:
                if reason := why_not(slurm, case):
                    tell(f"| {case.name} | {reason} | | | | | |")
                    continue
                well = _told(cluster, case, tell) and well
    return 0 if well else 1


def _told(cluster: SlurmCluster, case: Case, tell: Callable[[str], None]) -> bool:
    with tempfile.TemporaryDirectory(prefix="allowances-") as folder:
        lab = Lab(Path(folder))
        try:
            ran = run(cluster, lab, case)
        except (AssertionError, OSError) as problem:
            tell(f"| {case.name} | failed | | | | | |")
            print(problem, file=sys.stderr)
            return False
        finally:
            with suppress(OSError):
                lab.close()
            cluster.slurm.clear()
        tell(line_of(case, ran))
        return not ran.wrong


if __name__ == "__main__":
    sys.exit(main(tell=partial(print, flush=True)))
