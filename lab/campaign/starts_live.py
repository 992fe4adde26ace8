"""`adaptor when` on a real Slurm: what it says of a request, and when the same request really starts.

Jobs of others arrive at random, some before and the rest during the run; their limits are minutes, and they
run a share of them. Requests of random shape are asked for through a daemon that has learned nothing before,
submitted at once, and end before their limits too. All of them only sleep.

    python -m lab.campaign.starts_live --requests 100

prints each request, and the table of `docs/forecasts.md`: how often the interval held, the error of the
expected start, of the planned one and of Slurm's own (`sbatch --test-only`), and the width of the interval.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab

OPTIONS = ClusterOptions(
    nodes=30,
    cpus=4,
    scheduler_parameters="bf_interval=2,sched_interval=2,bf_continue,batch_sched_delay=1",
    min_job_age=86_400,
)
CONFIG = """
    sites:
      hpc: {backend: slurm, partition: batch}
"""
USERS = ((0.1, 0.3), (0.5, 0.9), (0.9, 1.0))
"""Shares of their limits that the jobs of three kinds of users run, from and to."""
SOONEST, PAUSE = 40, 3.0
"""Jobs that wait or run at the beginning, and mean seconds between two requests."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request. Times are epoch seconds."""

    shape: str
    at: float
    low: float
    value: float
    high: float
    planned: float
    slurm: float | None
    """Start by `sbatch --test-only`; None: it names none."""
    job: str


class Came(msgspec.Struct, frozen=True):
    asked: Asked
    start: float

    @property
    def held(self) -> bool:
        return self.asked.low <= self.start <= self.asked.high

    @property
    def wait(self) -> float:
        return self.start - self.asked.at


def job_of(draw: random.Random) -> tuple[list[str], int, int]:
    """Options of sbatch, minutes and seconds to sleep of a random job."""
    minutes = draw.choice([2, 3, 5])
    low, high = draw.choice(USERS)
    sleep = max(2, round(60 * minutes * draw.uniform(low, high)) - 3)
    if draw.random() < 0.25:
        nodes = draw.choice([1, 1, 2, 4])
        return [f"-N{nodes}", "--exclusive"], minutes, sleep
    return [f"-n{draw.choice([1, 1, 2, 2, 4, 4, 8, 16])}"], minutes, sleep


def submit(cluster: ThrowawaySlurm, options: Sequence[str], minutes: int, sleep: int) -> str:
    where = ["-p", "batch", f"-t{minutes}", "-o/dev/null"]
    return cluster.run(["sbatch", "--parsable", *where, *options, "--wrap", f"sleep {sleep}"]).strip()


def slurms_own(cluster: ThrowawaySlurm, options: Sequence[str], minutes: int) -> float | None:
    """The start that Slurm itself names for a request."""
    command = ["sbatch", "--test-only", "-p", "batch", f"-t{minutes}", *options, "--wrap", "true"]
    done = subprocess.run(
        command, env=cluster._environment(), capture_output=True, text=True, check=False, timeout=30
    )
    found = re.search(r"to start at (\S+)", done.stderr + done.stdout)
    return None if found is None else datetime.fromisoformat(found[1]).timestamp()


def words_of(options: Sequence[str], minutes: int) -> list[str]:
    """The same request in the words of `adaptor when`."""
    first = options[0]
    size = ["-p", first[2:]] if first.startswith("-n") else ["--nodes", first[2:]]
    return ["when", *size, "-t", f"{minutes}m", "--site", "hpc"]


def seconds(iso: str | None) -> float:
    return math.inf if iso is None else datetime.fromisoformat(iso.replace("Z", "+00:00")).timestamp()


def run(
    cluster: ThrowawaySlurm,
    lab: Lab,
    requests: int,
    seed: int = 1,
    *,
    pause: float = PAUSE,
    soonest: int = SOONEST,
    tell: Callable[[str], None] = print,
) -> list[Came]:
    """Ask and submit; wait for all starts."""
    draw = random.Random(seed)
    for _ in range(soonest):
        submit(cluster, *job_of(draw))
    lab.configure(CONFIG)
    lab.run("daemon", "start")
    asked: list[Asked] = []
    for number in range(requests):
        time.sleep(draw.expovariate(1 / pause))
        if draw.random() < 0.5:
            submit(cluster, *job_of(draw))
        options, minutes, sleep = job_of(draw)
        (view,) = lab.ask(*words_of(options, minutes))
        own = slurms_own(cluster, options, minutes)
        at = time.time()
        job = submit(cluster, options, minutes, sleep)
        start = view["start"]
        assert start is not None, view
        low, value, high = (seconds(start[name]) for name in ("low", "value", "high"))
        asked.append(
            Asked(
                shape=f"{' '.join(options)} -t{minutes}",
                at=at,
                low=low,
                value=value,
                high=high,
                planned=seconds(view["planned"]),
                slurm=own,
                job=job,
            )
        )
        tell(
            f"{number + 1:3} {asked[-1].shape:20} in {value - at:5.0f} s ({low - at:.0f} to {high - at:.0f})"
        )
    return list(came(cluster, asked))


def came(cluster: ThrowawaySlurm, asked: Sequence[Asked]) -> Iterator[Came]:
    """Each request with its start, when all have started."""
    while True:
        rows = cluster.run(
            ["squeue", "-h", "-t", "all", "-o", "%i %T %S"], env={"SLURM_TIME_FORMAT": "%s"}
        ).splitlines()
        found = {id: (state, start) for id, state, start in map(str.split, rows)}
        if all(found[each.job][0] != "PENDING" for each in asked):
            break
        time.sleep(2)
    for each in asked:
        yield Came(each, float(found[each.job][1]))


def table(results: Sequence[Came]) -> Iterator[str]:
    """A line for all requests, and one for those that had to wait."""
    yield "| requests | n | held | error: expected | planned | Slurm's own | width | within 1 min | 10 min |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, some in (("all", results), ("that waited 30 s or more", [c for c in results if c.wait >= 30])):
        if not some:
            continue
        slurm = [abs(c.start - c.asked.slurm) for c in some if c.asked.slurm is not None]
        errors = [abs(c.start - c.asked.value) for c in some]
        cells = [
            name,
            str(len(some)),
            f"{100 * sum(c.held for c in some) / len(some):.0f} %",
            f"{statistics.median(errors):.0f} s",
            f"{statistics.median(abs(c.start - c.asked.planned) for c in some):.0f} s",
            f"{statistics.median(slurm):.0f} s" if slurm else "-",
            f"{statistics.median(c.asked.high - c.asked.low for c in some):.0f} s",
            f"{100 * sum(error <= 60 for error in errors) / len(some):.0f} %",
            f"{100 * sum(error <= 600 for error in errors) / len(some):.0f} %",
        ]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.campaign.starts_live", description=__doc__)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="also write each request and its start as JSON")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThrowawaySlurm(OPTIONS) as cluster:
        os.environ.update(cluster.env)
        lab = Lab(Path(folder))
        results = run(cluster, lab, chosen.requests, chosen.seed)
        lab.run("daemon", "stop")
    if chosen.output is not None:
        chosen.output.write_bytes(msgspec.json.encode(results))
    waits = [c.wait for c in results]
    print(f"waits: median {statistics.median(waits):.0f} s, longest {max(waits):.0f} s")
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
