"""Donation: one step with 5,000 nodes; what a local job and a reclaim wait for, on a real Slurm.

Alone: `python -m bench.donation`; it takes three minutes.
"""

from __future__ import annotations

import contextlib
import math
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from adaptor.donation.deciding import decide
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import (
    DonatedUse,
    DonationDemand,
    DonationRules,
    DonationState,
    NodeUse,
    NodeView,
)
from adaptor.resources import TaskSize
from backends.slurm.parse import parse_partitions
from bench.private_daemon import PrivateDaemon, private_place
from bench.stopwatch import median_seconds, seconds
from bench.table import Row, show, timed
from tests.clusters.slurm import ThrowawaySlurm, available

PAIRS = 20
_PREEMPTIBLE = "{mode: preemptible, partition: scavenger}"


def wait_rows() -> Iterator[Row]:
    """Pairs in turn, as the load of the machine varies; every other pair begins with the nodes in use."""
    reason = available()
    if reason:
        yield Row("a local job's wait on a real Slurm", reason)
        return
    with donating_cluster(_PREEMPTIBLE) as cluster:
        pairs = [_pair(cluster, used_first=bool(number % 2)) for number in range(PAIRS)]
        # Seconds that Slurm itself gives preempted pilots to leave.
        partitions = parse_partitions(cluster.slurm.run(["scontrol", "show", "partition", "-o"]))
        yield from _table(pairs, next(each.grace for each in partitions if each.name == "scavenger"))


def _table(pairs: list[tuple[float, float]], grace: float) -> Iterator[Row]:
    """`pairs`: seconds of waiting without and with donation."""
    what = f"wait of a local job for 2 of {NODES} nodes"
    more = [with_it - without for without, with_it in pairs]
    within = sum(each <= grace for each in more)
    yield Row(f"{what}, all idle", _summary([without for without, _ in pairs]))
    yield Row(f"{what}, all used", _summary([with_it for _, with_it in pairs]))
    verdict = f"{within} of {len(pairs)} pairs within the grace time"
    yield Row(f"what donation adds, {verdict}", _summary(more), f"≤ {grace:g} s")


def _summary(seconds: list[float]) -> str:
    most = statistics.quantiles(seconds, n=10, method="inclusive")[-1]
    return f"median {statistics.median(seconds):.2f} s, 90 % {most:.2f} s"


def _pair(cluster: DonatingCluster, *, used_first: bool) -> tuple[float, float]:
    """Seconds that a local job waited without and with donation."""
    if used_first:
        with_it = _wait_where_used(cluster)
        return _wait(cluster), with_it
    return _wait(cluster), _wait_where_used(cluster)


def _wait_where_used(cluster: DonatingCluster) -> float:
    bag = cluster.use_all()
    waited = _wait(cluster)
    cluster.place.adaptor("cancel", str(bag))
    until(lambda: not cluster.slurm.run(["squeue", "-h", "-p", "scavenger"]), "the pilots have ended")
    return waited


def _wait(cluster: DonatingCluster) -> float:
    """Seconds that one local job waits, by its own account of when its script began."""
    output = cluster.slurm.root / "local.out"
    output.unlink(missing_ok=True)
    job = ["sbatch", "--parsable", "-p", "batch", "-N2", "--exclusive", "-t1", f"-o{output}"]
    begin = time.time()
    id = cluster.slurm.run([*job, "--wrap", "date +%s.%N; sleep 100"]).strip()
    until(lambda: output.exists() and "\n" in output.read_text(), "the local job runs")
    began = float(output.read_text())
    cluster.slurm.run(["scancel", id])
    until(lambda: not cluster.slurm.run(["squeue", "-h", "-p", "batch"]), "the local job has ended")
    return began - begin


ROUNDS = 5
_AGENTS = "{mode: agent, runtime_directory: {folder}/donated, patience: 100}"


def reclaim_rows() -> Iterator[Row]:
    reason = available()
    if reason:
        yield Row("reclaims on a real Slurm", reason)
        return
    with donating_cluster(_AGENTS) as cluster:
        bag = cluster.use_all()
        took: list[float] = []
        for _ in range(ROUNDS):
            cluster.wait_for_tasks(bag)
            took += [seconds(partial(_reclaim, cluster, node)) for node in cluster.slurm.options.node_names]
    what = f"reclaim of a node with running tasks, {len(took)} times"
    yield Row(what, f"median {statistics.median(took):.2f} s, longest {max(took):.2f} s", "≤ 1 s")


def _reclaim(cluster: DonatingCluster, node: str) -> None:
    """Raises RuntimeError: there was nothing to reclaim."""
    words = [
        "-I",
        "-m",
        "adaptor_donation_agents.reclaim",
        node,
        "--runtime",
        f"{cluster.slurm.root}/donated",
    ]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    if not done.stdout.strip():
        raise RuntimeError(f"nothing was in use on {node}: {done.stderr}")


NODES = 4
TASKS = 16
"""One for each processor."""
PATIENCE = 60.0
"""Seconds after which something that should have come about is given up."""


class DonatingCluster:
    def __init__(self, slurm: ThrowawaySlurm, place: PrivateDaemon) -> None:
        self.slurm = slurm
        self.place = place
        self._bag = place.folder / "long.bag"
        self._bag.write_text("#ADAPTOR allocation=transparent\n" + "sleep 1000\n" * TASKS)

    def use_all(self) -> int:
        """Have tasks run on all processors of all nodes; their bag."""
        bag = int(msgspec.json.decode(self.place.adaptor("submit", str(self._bag), "--json"))["bag"])
        self.wait_for_tasks(bag)
        return bag

    def wait_for_tasks(self, bag: int) -> None:
        """Wait until all of its tasks run."""
        until(lambda: self._running(bag) == TASKS, "tasks run on all nodes")

    def _running(self, bag: int) -> int:
        (found,) = msgspec.json.decode(self.place.adaptor("status", str(bag), "--json"))["bags"]
        return int(found["running"])


@contextlib.contextmanager
def donating_cluster(donation: str) -> Iterator[DonatingCluster]:
    """`donation`: that part of the site's configuration; `{folder}` stands for a folder that is removed."""
    with ThrowawaySlurm() as slurm:
        told = donation.replace("{folder}", str(slurm.root))
        site = f"{{backend: slurm, partition: batch, poll_interval: 2, donation: {told}}}"
        with private_place(f"sites: {{hpc: {site}}}\n", slurm.env) as place:
            place.adaptor("daemon", "start")
            yield DonatingCluster(slurm, place)


def until(condition: Callable[[], bool], what: str) -> None:
    """Raises RuntimeError: it does not come about."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > give_up:
            raise RuntimeError(f"not within {PATIENCE:g} s: {what}")
        time.sleep(0.1)


MODEL_NODES = 5000
NOW = 1e6


def rows() -> Iterator[Row]:
    yield from _steps()
    yield from reclaim_rows()
    yield from wait_rows()


def _steps() -> Iterator[Row]:
    for used, busy in ((0.0, 0.0), (0.2, 0.7), (1.0, 0.0)):
        view = _view(used, busy)
        hazard = IdleLearner().hazard
        took = median_seconds(partial(decide, view, hazard))
        what = f"donation step, {MODEL_NODES:,} nodes, {used:.0%} used, {busy:.0%} with local jobs"
        yield timed(what, took, 0.010)


def _view(used: float, busy: float) -> DonationState:
    draw = random.Random(1)  # noqa: S311 (not for secrets)
    # Jobs have several nodes, which come free together.
    planned = [NOW + draw.uniform(0, 86400) for _ in range(200)]
    freed = [NOW - draw.uniform(0, 86400) for _ in range(500)]
    nodes = []
    for number in range(MODEL_NODES):
        kind = draw.random()
        nodes.append(
            NodeView(
                name=f"n{number}",
                processors=64,
                use=NodeUse.TAKEN if used <= kind < used + busy else NodeUse.IDLE,
                since=draw.choice(freed),
                planned=draw.choice(planned) if draw.random() < 0.5 else math.inf,
                donated=DonatedUse(since=NOW - 60, busy=64) if kind < used else None,
            )
        )
    demands = tuple(
        DonationDemand(waiting=1_000_000, task=TaskSize(processors=cpus), needs=600.0) for cpus in (1, 4)
    )
    return DonationState(now=NOW, nodes=tuple(nodes), rules=DonationRules(), demands=demands)


if __name__ == "__main__":
    show("Donation", rows())
