"""Comparison of two heuristics for bags that share a site, by all decisions of the daemon.

Each scene is some bags that come at once into the queue of a trace: of tasks of one size, of two sizes, of
two bags of which one may run only some tasks at a time. Both heuristics meet the same queues.

    python -m lab.campaign.several_bags --trace ../shared/traces/SDSC-SP2-1998-4.2-cln.swf.gz

prints by scene the ratio of the turnarounds (of each bag; geometric mean, 95 % interval of a bootstrap over
the queues), and the worst queue.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.situation import SiteRules
from adaptor.decisions.site_settings import SiteSettings
from adaptor.model import Limits
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.state import SiteTerms
from adaptor_experiments.forecasts.trace_queues import QueueAt, queues_of
from adaptor_simulation.driver import SimulatedDriver
from adaptor_simulation.scene.site import ScenePlace, SimulatedSite
from adaptor_simulation.scene.world import World
from adaptor_simulation.trace_run import load_jobs
from adaptor_simulation.worker import Attempt
from lab.campaign.heuristics_live import interval

SITE = "site"
_GIVEN_UP = 30 * 86400
"""Seconds; a bag that takes longer counts as if it took this."""


class BagKind(msgspec.Struct, frozen=True):
    tasks: int
    mean: float
    """Seconds."""
    cpus: int = 1
    max_running: int | None = None


SCENES: dict[str, tuple[BagKind, ...]] = {
    "one bag": (BagKind(500, 600),),
    "tasks of two sizes": (BagKind(500, 600), BagKind(40, 3000, cpus=8)),
    "the wide ones are short": (BagKind(500, 3000), BagKind(40, 300, cpus=8)),
    "one may run only 20 tasks at a time": (BagKind(500, 600), BagKind(200, 600, cpus=2, max_running=20)),
}


def turnarounds(
    kinds: Sequence[BagKind], queue: QueueAt, processors: int, heuristic: str, seed: int
) -> list[float]:
    """Seconds until each bag has ended."""
    limits = Limits(max_pending_requests=6, max_proc=processors, max_tr=64_800)
    rules = SiteRules(limits=limits, pad=30.0, time_resolution=60, max_submissions=60)
    settings = SiteSettings(name=SITE, rules=rules, poll=60.0, idle_timeout=60.0, heuristic=heuristic)
    site = SimulatedSite(ScenePlace(settings=settings, jobs=queue.jobs, processors=processors, startup=15))
    driver = SimulatedDriver(
        {SITE: site},
        Broker({SITE: SiteTerms(initial_tr=3600.0, growth_factor=2, longest=rules.longest_task)}),
        {SITE: Tariff(price_explicit=1.0, price_donated=1.0)},
        watched={SITE: queue.shares},
    )
    world = World({SITE: site}, driver)
    runtimes = {}
    for number, kind in enumerate(kinds, 1):
        draw = np.random.default_rng([seed, number])
        runtimes[number] = np.maximum(1.0, draw.uniform(0.5, 1.5, kind.tasks) * kind.mean)
        spec = BagSpec(
            name="",
            cwd="",
            output="",
            environment={},
            cpus=kind.cpus,
            max_running=kind.max_running,
            replicas=0,
        )
        bag = Bag(number, spec, kind.tasks)
        bag.fill()
        world.add_bag(bag, lambda key, _site: Attempt(float(runtimes[key.bag][key.task])))
    world.run(_GIVEN_UP)
    ends = dict.fromkeys(runtimes, float(_GIVEN_UP))
    for each in world.ended:
        ends[each.bag] = float(each.at)
    return list(ends.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--trace", type=Path, required=True, help="SWF, also compressed")
    parser.add_argument("--queues", type=int, default=20, help="Instants of the trace")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--heuristics", nargs=2, default=["adaptive", "completion"], metavar=("BASE", "NEW"))
    parser.add_argument("--scene", action="append", choices=list(SCENES), help="default: all")
    chosen = parser.parse_args()
    loaded = load_jobs(chosen.trace)
    processors, queues = loaded.processors, queues_of(loaded, chosen.queues, chosen.seed)
    print(
        "turnaround of {} / turnaround of {}, {} queues".format(*chosen.heuristics, len(queues)), flush=True
    )
    for name in chosen.scene or SCENES:
        ratios = []
        for number, queue in enumerate(queues):
            base, new = (
                turnarounds(SCENES[name], queue, processors, heuristic, number)
                for heuristic in chosen.heuristics
            )
            ratios.append(math.exp(statistics.fmean(math.log(a / b) for a, b in zip(base, new, strict=True))))
        mean, low, high = interval(ratios)
        print(f"{name}: {mean:.2f} [{low:.2f}, {high:.2f}]; worst {min(ratios):.2f}", flush=True)


if __name__ == "__main__":
    main()
