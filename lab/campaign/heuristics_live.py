"""Two ways in turn on the same scenes of a real scheduler: which completes a bag sooner, and by how much.

A scene: local jobs whose limits are minutes and whose run times are a known share of them, queued before
the bag comes, and some more that come later; then a bag of tasks, once in each way, in an order that
alternates. Local jobs and tasks only sleep, so that several clusters run side by side. A way is a heuristic,
and each bag has a daemon of its own, which has learned nothing; or `array-3`: a job array with a task in
each job, whose user asks for 3 times what the longest task takes.

    python -m lab.campaign.heuristics_live --repetitions 30 --ways array-3 elastic --spread 1

prints each repetition, then the ratio of the turnarounds with the 95 % interval of a paired bootstrap.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from tests.clusters import openpbs_conf
from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab

NODES, CPUS = 4, 4
OPTIONS = ClusterOptions(
    nodes=NODES,
    cpus=CPUS,
    scheduler_parameters="bf_interval=2,bf_resolution=1,sched_interval=2,bf_continue,batch_sched_delay=1,"
    "bf_max_job_user=20,bf_max_job_test=100",
    extra=("PriorityType=priority/multifactor", "PriorityWeightAge=1000", "PriorityMaxAge=0-01:00:00"),
)
"""Holes of seconds count, as holes of minutes do on a cluster whose jobs run for hours. As on most sites,
only some jobs of each user are looked at, and age gives priority."""
CONFIG = """
    sites:
      hpc:
        {backend}
        heuristic: {heuristic}
        limits: {limits}
        initial_tr: 1m
        pad: 6s
        idle_timeout: 5
        poll_interval: 2
        max_submissions: 600/h
"""
MANY = "{max_pilots: 100, max_tr: 1h}"
FEW = "{max_pending_requests: 3, max_proc: 8, max_tr: 1h}"
"""The limits of `elastic`, and of the other heuristics."""
LONGEST = 3600.0
"""Seconds that a bag may take."""
RESAMPLES = 5000


class LocalJob(msgspec.Struct, frozen=True):
    at: float
    """Seconds before (negative) or after the bag comes."""
    processors: int
    minutes: int
    """Its limit."""
    runs: int
    """Seconds."""


class Scene(msgspec.Struct, frozen=True):
    local: tuple[LocalJob, ...]
    tasks: int
    seconds: int
    """Mean seconds of a task."""
    spread: float = 0.0
    """Deviation of the logarithm of the tasks' seconds."""

    def runtimes(self) -> list[float]:
        """Seconds of each task."""
        draw, middle = random.Random(self.tasks * self.seconds), math.log(self.seconds) - self.spread**2 / 2
        return [round(draw.lognormvariate(middle, self.spread), 1) for _ in range(self.tasks)]


class Outcome(msgspec.Struct, frozen=True):
    turnaround: float
    requests: int
    withdrawn: int
    reshaped: int
    """Changes of requests that waited."""
    wasted: float
    """Processor-seconds that requests held in which no task ran."""


def scene_of(seed: int) -> Scene:
    """The machine is full; a queue of a quarter of an hour waits by its limits, and runs in a third of it."""
    draw = random.Random(seed)
    local = [_local(draw, -6.0) for _ in range(9)]
    local += [_local(draw, draw.uniform(15, 120)) for _ in range(3)]
    return Scene(tuple(local), tasks=draw.choice((24, 48, 96)), seconds=draw.choice((15, 30, 60)))


def _local(draw: random.Random, at: float) -> LocalJob:
    minutes = draw.choice((3, 5, 10, 15))
    share = draw.choice((0.1, 0.2, 0.3, 0.5))
    return LocalJob(at, draw.choice((1, 2, 4, 4, 8)), minutes, max(5, round(60 * minutes * share)))


Cluster = ThrowawaySlurm | ThrowawayOpenPbs


@contextlib.contextmanager
def cluster_of(scheduler: str) -> Iterator[Cluster]:
    """Four nodes of four processors; waiting jobs are planned in their order."""
    if scheduler == "slurm":
        with ThrowawaySlurm(OPTIONS) as slurm:
            yield slurm
    else:
        with ThrowawayOpenPbs(openpbs_conf.ClusterOptions(nodes=NODES, cpus=CPUS)) as pbs, pbs.plans():
            yield pbs


def repetition(
    number: int, seed: int, ways: tuple[str, str], spread: float = 0.0, scheduler: str = "slurm"
) -> tuple[Scene, dict[str, Outcome]]:
    """One scene in both ways, on a cluster of its own, which is that of this process."""
    scene = msgspec.structs.replace(scene_of(seed * 1000 + number), spread=spread)
    found: dict[str, Outcome] = {}
    with cluster_of(scheduler) as cluster, tempfile.TemporaryDirectory(prefix="heuristics-live-") as folder:
        os.environ.update(cluster.env)
        for way in ways if number % 2 == 0 else ways[::-1]:
            place = Path(folder) / way
            place.mkdir(mode=0o700)
            found[way] = play(cluster, scene, way, place)
    return scene, found


def play(cluster: Cluster, scene: Scene, way: str, folder: Path) -> Outcome:
    """One bag."""
    cluster.clear()
    stop = threading.Event()
    kind, _, factor = way.partition("-")
    lab = None if kind == "array" else Lab(folder)
    try:
        if lab is not None:
            lab.configure(_config(cluster, way))
            lab.run("daemon", "start")
        for job in scene.local:
            if job.at < 0:
                _submit(cluster, job)
        time.sleep(-min((job.at for job in scene.local), default=0.0))
        began = time.time()
        coming = threading.Thread(target=_later, args=(cluster, scene.local, began, stop))
        coming.start()
        if lab is None:
            return _array(cluster, scene, float(factor), folder)
        lab.bag([f"sleep {seconds}" for seconds in scene.runtimes()])
        bag = lab.submit("tasks.bag")
        lab.wait(bag, timeout=LONGEST)
        status = lab.status(bag)
        return Outcome(_at(status["ended"]) - _at(status["submitted"]), *_used(lab, scene))
    finally:
        stop.set()
        if lab is not None:
            lab.close()


def _config(cluster: Cluster, heuristic: str) -> str:
    keys = (
        ("backend: slurm", "partition: batch") if isinstance(cluster, ThrowawaySlurm) else ("backend: pbs",)
    )
    limits = MANY if heuristic == "elastic" else FEW
    return CONFIG.format(backend="\n        ".join(keys), heuristic=heuristic, limits=limits)


def _array(cluster: Cluster, scene: Scene, factor: float, folder: Path) -> Outcome:
    """Job array of a user who knows the longest task within this factor."""
    runtimes = scene.runtimes()
    minutes = math.ceil(factor * max(runtimes) / 60)
    task = folder / "task"
    task.write_text(
        f"#!/bin/sh\nset -- {' '.join(map(str, runtimes))}\n"
        'number="${SLURM_ARRAY_TASK_ID:-$PBS_ARRAY_INDEX}"\nshift "$number"\nsleep "$1"\n'
        f'date +%s.%N >"{folder}/end.$number.part"\nmv "{folder}/end.$number.part" "{folder}/end.$number"\n'
    )
    task.chmod(0o755)
    began, last = time.time(), len(runtimes) - 1
    several = f"--array=0-{last}" if isinstance(cluster, ThrowawaySlurm) else f"-J0-{last}"
    cluster.run([*_request(cluster, 1, minutes), several, str(task)])
    while len(ends := list(folder.glob("end.*[0-9]"))) <= last:
        if time.time() > began + LONGEST:
            raise TimeoutError(f"{len(ends)} of {len(runtimes)} tasks have ended")
        time.sleep(1)
    return Outcome(max(float(each.read_text()) for each in ends) - began, len(runtimes), 0, 0, 0.0)


def _submit(cluster: Cluster, job: LocalJob) -> None:
    runs = ["--wrap", f"sleep {job.runs}"]
    if not isinstance(cluster, ThrowawaySlurm):
        runs = ["--", "/bin/sleep", str(job.runs)]
    cluster.run([*_request(cluster, job.processors, job.minutes), *runs])


def _request(cluster: Cluster, processors: int, minutes: int) -> list[str]:
    """The command that submits, but what runs."""
    if isinstance(cluster, ThrowawaySlurm):
        return ["sbatch", f"-n{processors}", f"-t{minutes}", "-pbatch", "-o/dev/null"]
    wants = ["-l", f"select={processors}:ncpus=1", "-l", f"walltime=00:{minutes:02}:00"]
    return ["qsub", *wants, "-j", "oe", "-o", "/dev/null"]


def _later(cluster: Cluster, local: Iterable[LocalJob], began: float, stop: threading.Event) -> None:
    for job in sorted(local, key=lambda job: job.at):
        if job.at >= 0:
            if stop.wait(max(0.0, began + job.at - time.time())):
                return
            _submit(cluster, job)


def _at(told: str) -> float:
    """Epoch seconds."""
    return datetime.fromisoformat(told).timestamp()


def _used(lab: Lab, scene: Scene) -> tuple[int, int, int, float]:
    """Requests, those that were withdrawn, changes, and the processor-seconds held beyond the tasks'."""
    pilots, now = lab.pilots(), time.time()
    held = sum(
        each["p"] * ((_at(each["ended"]) if each["ended"] else now) - _at(each["started"]))
        for each in pilots
        if each["started"] is not None
    )
    withdrawn = sum(each["state"] == "withdrawn" for each in pilots)
    reshaped = lab.ask("why", "--kind", "reshaped", "--limit", "100000")
    return len(pilots), withdrawn, len(reshaped), held - sum(scene.runtimes())


def interval(ratios: Sequence[float], seed: int = 1) -> tuple[float, float, float]:
    """The geometric mean of the ratios, with the 95 % interval of a bootstrap over repetitions."""
    draw = random.Random(seed)
    logs = [math.log(each) for each in ratios]
    means = sorted(statistics.fmean(draw.choices(logs, k=len(logs))) for _ in range(RESAMPLES))
    low, high = means[round(0.025 * RESAMPLES)], means[round(0.975 * RESAMPLES) - 1]
    return math.exp(statistics.fmean(logs)), math.exp(low), math.exp(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--clusters", type=int, default=4, help="Side by side")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs=2, default=["array-3", "elastic"], metavar=("BASE", "NEW"))
    parser.add_argument("--spread", type=float, default=0.0, help="Deviation of the logarithm of runtimes")
    parser.add_argument("--scheduler", choices=["slurm", "openpbs"], default="slurm")
    parser.add_argument("--json", type=Path, help="Also write the outcomes there")
    chosen = parser.parse_args()
    base, new = chosen.ways
    kept: list[dict[str, Outcome]] = []
    with ProcessPoolExecutor(chosen.clusters) as pool:
        play_it = partial(
            repetition, seed=chosen.seed, ways=(base, new), spread=chosen.spread, scheduler=chosen.scheduler
        )
        for played in as_completed([pool.submit(play_it, number) for number in range(chosen.repetitions)]):
            if problem := played.exception():
                print(f"a scene was not played: {problem}", flush=True)
                continue
            scene, found = played.result()
            kept.append(found)
            print(f"{len(kept)}: {scene.tasks} × {scene.seconds} s: {_words(found, base, new)}", flush=True)
            if chosen.json is not None:
                chosen.json.write_bytes(json.dumps(msgspec.to_builtins(kept)).encode())
    ratios = [each[base].turnaround / each[new].turnaround for each in kept]
    mean, low, high = interval(ratios)
    print(
        f"{new} completes bags {mean:.2f} times as fast as {base} (95 % {low:.2f} to {high:.2f}, "
        f"{len(ratios)} scenes, geometric mean; worst {min(ratios):.2f}, best {max(ratios):.2f})"
    )
    for way in (base, new):
        each = [outcome[way] for outcome in kept]
        print(
            f"{way}: {statistics.fmean(o.requests for o in each):.1f} requests a bag, "
            f"{statistics.fmean(o.withdrawn for o in each):.1f} withdrawn, "
            f"{statistics.fmean(o.reshaped for o in each):.1f} reshaped, "
            f"{statistics.fmean(o.wasted for o in each):.0f} processor-seconds wasted"
        )


def _words(found: dict[str, Outcome], base: str, new: str) -> str:
    told = ", ".join(
        f"{name} {found[name].turnaround:.0f} s ({found[name].requests} requests, "
        f"{found[name].withdrawn} withdrawn)"
        for name in (base, new)
    )
    return f"{told}: {found[base].turnaround / found[new].turnaround:.2f}"


if __name__ == "__main__":
    main()
