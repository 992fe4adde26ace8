"""Accuracy of `adaptor plan`: bags on a real Slurm of 16 processors with local jobs.

Local jobs of random size and length come all the time; most end before their limits. The bags are of the
kinds of `adaptor replay forecast`, each in pilots of its own: the next one comes when the last pilots have
left. For each bag `adaptor plan` is asked, the bag is submitted, and the end that `adaptor status` shows is
kept when 0, 10, 50 and 90 % of its tasks have ended. Several clusters at the same time, each with a daemon,
bags and local jobs of its own, need no more time than one: nearly all of it is waiting.

    python -m lab.campaign.plans --bags 30 --beside 3 --every 12 --seed 1
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from adaptor import api
from adaptor.api import BagView, ForecastView
from adaptor.client.asking import DaemonConnection, NoAnswerError
from adaptor_experiments.forecasts.queue_bags import KINDS, drawn
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions

MOMENTS = (0.0, 0.1, 0.5, 0.9)
CONFIG = """
sites:
  hpc:
    backend: slurm
    partition: batch
    environment: {{SLURM_CONF: {conf}}}
    limits: {{max_pending_requests: 3, max_proc: 6, max_tr: 4m}}
    pad: 10s
    initial_tr: 1m
    poll_interval: 2s
    max_submissions: 6000/h
    idle_timeout: 5s
"""
LONGEST = 600.0
"""Seconds that a bag may take."""
LEAVING = 15.0
"""Seconds after which the workers of an ended bag have left."""
LOOK = 0.5
"""Seconds between two looks at a bag."""


class Local(threading.Thread):
    """Jobs of other users."""

    def __init__(self, slurm: ThrowawaySlurm, seed: int, every: float) -> None:
        """`every`: seconds between two jobs, in the mean; each holds about 120 processor-seconds."""
        super().__init__(daemon=True)
        self._every = every
        self._slurm, self._draw, self.over = slurm, random.Random(seed), threading.Event()

    def run(self) -> None:
        while not self.over.wait(self._draw.expovariate(1 / self._every)):
            minutes = self._draw.choice((1, 2, 3))
            runs = minutes * 60 * self._draw.uniform(0.1, 0.9)
            tasks = self._draw.choice((1, 1, 2, 4))
            options = ["-p", "batch", f"-n{tasks}", f"-t{minutes}", "-o/dev/null"]
            self._slurm.run(["sbatch", *options, "--wrap", f"sleep {runs:.0f}"], check=False)


class Bags:
    def __init__(self, folder: Path, config: Path) -> None:
        self._folder, self._config = folder, config
        self._daemon = DaemonConnection(folder / "state")
        self._env = {**os.environ, "ADAPTOR_DIR": str(folder / "state")}

    def adaptor(self, *arguments: str) -> Any:
        """The JSON that a command prints."""
        command = [sys.executable, "-m", "adaptor.cli", *arguments, "--json"]
        done = subprocess.run(
            command, env=self._env, cwd=self._folder, capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode not in (0, 3):
            raise RuntimeError(f"{' '.join(arguments)}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def stop(self) -> None:
        subprocess.run(
            [sys.executable, "-m", "adaptor.cli", "daemon", "stop", "--pilots"], env=self._env, check=False
        )

    def one(self, number: int, draw: random.Random) -> dict[str, Any]:
        """Plan a bag, run it, and look at its forecasts on the way."""
        tasks, mean, kind = draw.choice((40, 80)), draw.choice((6.0, 12.0)), list(KINDS)[number % len(KINDS)]
        times = [min(60.0, mean * each) for each in drawn(kind, draw, tasks)]
        file = self._folder / f"bag{number}.bag"
        file.write_text("".join(f"sleep {each:.2f}\n" for each in times), encoding="utf-8")
        hint = f"{max(1, round(sum(times) / tasks * draw.lognormvariate(0.0, 0.3)))}s"
        given = [str(file), "--time", hint, "--config", str(self._config)]
        plan = self.adaptor("plan", *given)
        submitted = time.time()
        bag = self.adaptor("submit", *given)["bag"]
        told = self._follow(bag, tasks)
        report = self.adaptor("report", str(bag))
        end = _epoch(report["bag"]["ended"])
        first = report["requests"][: len(plan["requests"])]
        return {
            "kind": kind,
            "tasks": tasks,
            "took": end - submitted,
            "plan": [_after(plan["end"], key, submitted) for key in ("low", "value", "high")],
            "asked": [(each["p"], each["tr"]) for each in plan["requests"]],
            "withheld": plan["withheld"],
            "made": [(each["p"], each["tr"]) for each in first],
            "planned": [_after(each, "start", submitted) for each in plan["requests"]],
            "started": [_after(each, "started", submitted) for each in first],
            "told": {
                moment: [at - submitted, *_interval(ahead, submitted)] for moment, (at, ahead) in told.items()
            },
        }

    def _follow(self, bag: int, tasks: int) -> dict[float, tuple[float, ForecastView]]:
        """The first forecast from each moment on, with the time at which it was read."""
        told: dict[float, tuple[float, ForecastView]] = {}
        until = time.time() + LONGEST
        while time.time() < until:
            view = self._look(bag)
            if view is not None and view.state != "running":
                return told
            for moment in MOMENTS:
                if view is None or moment in told or view.done < moment * tasks or view.forecast is None:
                    continue
                told[moment] = time.time(), view.forecast
            time.sleep(LOOK)
        self.adaptor("cancel", str(bag))
        raise RuntimeError(f"bag {bag} has not ended after {LONGEST:g} s")

    def _look(self, bag: int) -> BagView | None:
        """View of a bag; None: the daemon is busy."""
        try:
            return self._daemon.ask(api.GetBags(str(bag))).bags[0]
        except NoAnswerError:
            return None


def _interval(ahead: ForecastView, submitted: float) -> list[float | None]:
    end = ahead.end
    return [None] * 3 if end is None else [at - submitted for at in (end.low, end.value, end.high)]


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _after(view: dict[str, Any], key: str, submitted: float) -> float | None:
    return None if view[key] is None else _epoch(view[key]) - submitted


def _held(low: float | None, high: float | None, end: float) -> bool:
    return low is not None and low - 1 <= end and (high is None or end <= high + 1)


def summary(rows: list[dict[str, Any]]) -> None:
    held = sum(_held(row["plan"][0], row["plan"][2], row["took"]) for row in rows)
    same = sum(sorted(row["asked"]) == sorted(row["made"]) for row in rows)
    errors = [abs(row["plan"][1] - row["took"]) / row["took"] for row in rows if row["plan"][1] is not None]
    print(
        f"plan: the end was in its interval for {held} of {len(rows)} bags; median error {median(errors):.0%}"
    )
    print(f"plan: the first requests were those planned for {same} of {len(rows)} bags")
    late = [
        real - planned
        for row in rows
        for planned, real in zip(row["planned"], row["started"], strict=False)
        if planned is not None and real is not None
    ]
    if late:
        print(
            f"plan: requests started {median(late):.0f} s after their planned start (median of {len(late)})"
        )
    for moment in MOMENTS:
        told = [(row["told"][moment], row["took"]) for row in rows if moment in row["told"]]
        known = [(each, took) for each, took in told if each[2] is not None]
        if not known:
            continue
        inside = sum(_held(each[1], each[3], took) for each, took in known)
        widths = [
            (each[3] - each[1]) / max(1.0, took - each[0]) for each, took in known if each[3] is not None
        ]
        print(
            f"status at {moment:.0%}: held {inside} of {len(known)};"
            f" median width {median(widths):.2f} of what was left"
        )


def cluster(numbers: Iterable[int], seed: int, every: float) -> list[dict[str, Any]]:
    """The bags of these numbers, one after the other, on a cluster of their own."""
    draw, rows = random.Random(seed), []
    with ThrowawaySlurm(ClusterOptions(nodes=4, cpus=4)) as slurm, tempfile.TemporaryDirectory() as folder:
        slurm.wait_ready()
        config = Path(folder) / "config.yaml"
        config.write_text(CONFIG.format(conf=slurm.conf), encoding="utf-8")
        bags, local = Bags(Path(folder), config), Local(slurm, seed, every)
        local.start()
        try:
            for number in numbers:
                time.sleep(LEAVING)
                try:
                    rows.append(bags.one(number, draw))
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    print(f"bag {number} is left out: {error}", flush=True)
                    continue
                print(json.dumps(rows[-1]), flush=True)
        finally:
            local.over.set()
            bags.stop()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bags", type=int, default=30)
    parser.add_argument("--beside", type=int, default=1, help="clusters at the same time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between local jobs of a cluster")
    asked = parser.parse_args()
    seed, every = 1000 * asked.seed, asked.every
    shares = [range(place, asked.bags, asked.beside) for place in range(asked.beside)]
    # The daemons of a cluster end with the thread that began them: its own, which lives as long as it does.
    with ThreadPoolExecutor(asked.beside) as pool:
        parts = [pool.submit(cluster, share, seed + share.start, every) for share in shares]
        summary([row for part in parts for row in part.result()])


if __name__ == "__main__":
    main()
