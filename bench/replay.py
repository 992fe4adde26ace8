"""Speed of replay: the simulated cluster next to its peers, and grid jobs of De Rose's experiment.

The traces are looked for in `../shared/traces`. Run as `python -m bench.replay`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from adaptor_experiments.derose.design import WORKLOADS, Settings
from adaptor_experiments.derose.sample import load, run_sample
from adaptor_experiments.transparent.design import MACHINES
from adaptor_simulation.cluster import Policy
from adaptor_simulation.trace_run import load_jobs, replay
from bench.stopwatch import median_seconds
from bench.table import Row, show, timed

TRACES = Path("../shared/traces")
SAMPLES = range(2)
"""Samples of the experiment, 432 grid jobs each."""
TARGETS: tuple[tuple[Policy, float], ...] = (("conservative", 0.300), ("easy", 0.100))

PEERS = (
    ("pyss (Python 3.11, -O)", "19.6 s", "2.71 s", "all"),
    ("Batsim 4.1 + batsched", "15.1 s", "9.58 s", "21 % / 29 %"),
    ("CQSim", "20.4 s", "10.1 s", "16 % / 17 %"),
    ("AccaSim 1.1.3", "none", "6.94 s", "- / 15 %"),
    ("Alea 4 (JDK 17)", "> 280 s", "3.50 s", "- / 20 %"),
    ("prototype in C", "0.21 s", "0.12 s", "all"),
)
"""Whole processes on lublin_256_est (10,000 jobs, 256 processors), measured in 2026 on two cores of an
AMD EPYC; the last column is the share of starts that equal those of pyss, conservative / EASY."""


def rows(normalised: Path) -> Iterator[Row]:
    """The targets of the project."""
    loaded = load_jobs(normalised)
    for policy, target in TARGETS:
        took = median_seconds(partial(replay, loaded.jobs, loaded.processors, policy))
        yield timed(f"{policy}, {len(loaded.jobs):,} jobs of SDSC SP2", took, target)
    whole = median_seconds(partial(_command, normalised, "conservative"), 3)
    yield timed("  the whole command", whole, 2.0)
    yield from _grid_jobs()


def _grid_jobs() -> Iterator[Row]:
    """Some samples of the experiment on each trace, in seconds of processor time per grid job."""
    settings = Settings()
    total = 0.0
    for workload in WORKLOADS:
        jobs = load(TRACES / f"{workload.file}.swf.gz", workload.processors)
        begin = time.process_time()
        for sample in SAMPLES:
            run_sample(workload, jobs, settings, sample)
        took = (time.process_time() - begin) / len(SAMPLES)
        total += took if workload in MACHINES else 0
        yield timed(f"grid job on {workload.title}", took / settings.jobs_per_sample)
    yield timed("129,600 grid jobs on 2 cores, from these", total * 100 / 2, 3600.0)


def peers() -> list[tuple[str, ...]]:
    """Whole processes on the same trace, ours in the last row."""
    trace = TRACES / "lublin_256_est.swf.gz"
    if not trace.is_file():
        return list(PEERS)
    ours = [median_seconds(partial(_command, trace, policy), 3) for policy, _ in TARGETS]
    return [*PEERS, ("adaptor replay trace, here", *(f"{took:.2f} s" for took in ours), "all")]


def _command(trace: Path, policy: Policy) -> None:
    arguments = [sys.executable, "-m", "adaptor.cli", "replay", "trace", str(trace), "--scheduler", policy]
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    normalised = TRACES / "sdsc-sp2.swf.gz"
    if not normalised.is_file():
        print(f"replay: no traces in {TRACES}, nothing measured")
        return
    show("Replay", rows(normalised))
    print("Simulators on lublin_256_est: whole process, and starts equal to those of pyss")
    for who, conservative, easy, equal in [("", "conservative", "EASY", "equal starts"), *peers()]:
        print(f"  {who:28} {conservative:>13} {easy:>8}  {equal}")


if __name__ == "__main__":
    main()
