"""How long a local job waits on a real Slurm whose idle nodes are donated, beside one whose are not."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from backends.slurm.parse import parse_partitions
from bench.donating_cluster import NODES, DonatingCluster, donating_cluster, until
from bench.table import Row
from tests.clusters.slurm import available

PAIRS = 20
_DONATION = "{mode: preemptible, partition: scavenger}"


def rows() -> Iterator[Row]:
    """Pairs in turn, as the load of the machine varies; every other pair begins with the nodes in use."""
    reason = available()
    if reason:
        yield Row("a local job's wait on a real Slurm", reason)
        return
    with donating_cluster(_DONATION) as cluster:
        pairs = [_pair(cluster, used_first=bool(number % 2)) for number in range(PAIRS)]
        # Seconds that Slurm itself gives preempted pilots to leave.
        partitions = parse_partitions(cluster.slurm.run(["scontrol", "show", "partition", "-o"]))
        yield from _table(pairs, next(each.grace for each in partitions if each.name == "scavenger"))


def _table(pairs: list[tuple[float, float]], grace: float) -> Iterator[Row]:
    """`pairs`: seconds of waiting without and with donation."""
    what = f"wait of a local job for 2 of {NODES} nodes"
    more = [with_it - without for without, with_it in pairs]
    within = sum(each <= grace for each in more)
    yield Row(f"{what}, all idle", _words([without for without, _ in pairs]))
    yield Row(f"{what}, all used", _words([with_it for _, with_it in pairs]))
    verdict = f"{within} of {len(pairs)} pairs within the grace time"
    yield Row(f"what donation adds, {verdict}", _words(more), f"≤ {grace:g} s")


def _words(seconds: list[float]) -> str:
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
    """Of one local job, by its own account of when its script began."""
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
