"""The scenes of `heuristics_live` in the simulator, also stretched to hours: does a heuristic keep its pace?

    python -m lab.campaign.heuristic_scenes --scenes 150

prints by policy and stretch the ratio of the turnarounds, with the 95 % interval of a bootstrap over scenes.
With `--as-live` requests have the pad and the whole minutes of the live scenes, and workers end their tasks
before their pilot does. With `--foresight` the second heuristic knows the future (`foresight`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import cast

import msgspec
import numpy as np

from adaptor.crafting.heuristics import HeuristicName
from adaptor.crafting.situation import SiteRules
from adaptor.model import Limits
from adaptor.protocol.messages import LAST_SECONDS
from adaptor_simulation.cluster import Policy, cluster_of_processors
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.jobs import Jobs
from lab.campaign.foresight import with_foresight
from lab.campaign.heuristics_live import CPUS, NODES, Scene, interval, scene_of

INITIAL_TR = 60.0
"""Seconds, as in the live scenes; adaptive's is stretched with them, as its usual hour is meant for hours."""
MAX_TR = 3600
PAD, IDLE_TIMEOUT, MINUTE = 6.0, 5, 60
"""Seconds, of the live scenes."""


class Terms(msgspec.Struct, frozen=True):
    stretch: float = 1.0
    """The factor on all times of a scene."""
    as_live: bool = False
    """Whether requests have the pad and the whole minutes of a live scene, and workers end as there."""
    foresight: bool = False
    """Whether the second heuristic knows the future."""


def ratio(scene: Scene, policy: Policy, terms: Terms, pair: tuple[str, str]) -> float:
    """By how much sooner the second heuristic completes the bag."""
    base = cluster_of_processors(jobs_of(scene, terms.stretch), CPUS * NODES, policy)
    base.advance(round(6 * terms.stretch))
    runtimes = np.full(scene.tasks, round(scene.seconds * terms.stretch), np.int64)
    first, second = (_grid_terms(name, terms) for name in pair)
    slower = run_grid_job(base.fork(), runtimes, first).turnaround
    if terms.foresight:
        return slower / with_foresight(base, runtimes, second)[1]
    return slower / run_grid_job(base.fork(), runtimes, second).turnaround


def jobs_of(scene: Scene, stretch: float) -> Jobs:
    """From the local jobs that are there at second 0 on; the bag comes six seconds later."""
    local = sorted(scene.local, key=lambda job: job.at)
    seconds = np.array([(max(0.0, job.at), job.runs, 60 * job.minutes) for job in local])
    submit, run, estimate = np.rint(seconds * stretch).astype(np.int64).T
    return Jobs(
        number=np.arange(1, len(local) + 1),
        submit=submit,
        run=run,
        estimate=estimate,
        processors=np.array([job.processors for job in local], np.int64),
    )


def _grid_terms(name: str, terms: Terms) -> GridTerms:
    stretch = terms.stretch
    rules = SiteRules(
        limits=Limits(max_pending_requests=3, max_proc=8, max_tr=round(MAX_TR * stretch)), max_submissions=600
    )
    workers = INSTANT_WORKERS
    if terms.as_live:
        minutes = round(MINUTE * stretch)
        rules = msgspec.structs.replace(rules, pad=PAD * stretch, time_resolution=minutes)
        workers = msgspec.structs.replace(
            workers, last=round(LAST_SECONDS * stretch), idle_timeout=round(IDLE_TIMEOUT * stretch)
        )
    return GridTerms(
        rules=rules,
        heuristic=cast(HeuristicName, name),
        workers=workers,
        initial_tr=INITIAL_TR * (stretch if name == "adaptive" else 1.0),
    )


def ratios(
    scenes: int, policy: Policy, terms: Terms, pair: tuple[str, str] = ("adaptive", "completion")
) -> Sequence[float]:
    return [ratio(scene_of(1000 + number), policy, terms, pair) for number in range(scenes)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scenes", type=int, default=150)
    parser.add_argument("--stretch", type=float, nargs="+", default=[1.0, 10.0, 60.0])
    parser.add_argument("--policy", nargs="+", default=["conservative", "easy"])
    parser.add_argument("--as-live", action="store_true")
    parser.add_argument("--foresight", action="store_true")
    chosen = parser.parse_args()
    for policy in chosen.policy:
        for stretch in chosen.stretch:
            terms = Terms(stretch, chosen.as_live, chosen.foresight)
            found = ratios(chosen.scenes, cast(Policy, policy), terms)
            mean, low, high = interval(found)
            print(
                f"{policy}, times × {stretch:g}: completion completes bags {mean:.2f} [{low:.2f}, {high:.2f}]"
                f" times as fast as adaptive (worst {min(found):.2f}, best {max(found):.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
