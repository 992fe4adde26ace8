"""Comparison of two heuristics for several sites that share a bag, by all decisions of the daemon.

Each site has the queue of another of the live scenes (`heuristics_live`), stretched. Both heuristics meet the
same queues.

    python -m lab.campaign.several_sites --scenes 24

prints the ratio of the turnarounds, with the 95 % interval of a bootstrap over scenes.
"""

from __future__ import annotations

import argparse

import numpy as np

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.situation import SiteRules
from adaptor.decisions.site_settings import SiteSettings
from adaptor.model import Limits
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.state import SiteTerms
from adaptor_simulation.driver import SimulatedDriver
from adaptor_simulation.scene.site import ScenePlace, SimulatedSite
from adaptor_simulation.scene.world import World
from adaptor_simulation.worker import Attempt
from lab.campaign.heuristic_scenes import INITIAL_TR, jobs_of
from lab.campaign.heuristics_live import CPUS, NODES, Scene, interval, scene_of

_GIVEN_UP = 400_000
"""Seconds; a bag that takes longer counts as if it took this."""


def turnaround(scenes: list[Scene], heuristic: str, stretch: float, *, unequal: bool, seed: int) -> float:
    """Seconds until a bag of twice the tasks of the first scene for each site has ended."""
    begin = round(6 * stretch)
    limits = Limits(max_pending_requests=3, max_proc=8, max_tr=round(3600 * stretch))
    rules = SiteRules(limits=limits, time_resolution=60, pad=6.0, max_submissions=600, may_reshape=True)
    sites = {}
    for number, scene in enumerate(scenes):
        settings = SiteSettings(
            name=f"site{number}", rules=rules, heuristic=heuristic, poll=20.0, idle_timeout=30.0
        )
        place = ScenePlace(
            settings=settings, jobs=jobs_of(scene, stretch), processors=CPUS * NODES, startup=2
        )
        sites[settings.name] = SimulatedSite(place)
        sites[settings.name].advance(begin)
    terms = SiteTerms(
        initial_tr=INITIAL_TR * (1.0 if heuristic == "completion" else stretch),
        growth_factor=2,
        longest=rules.longest_task,
        even_odds=HEURISTICS[heuristic].even_odds,
        last=3.0,
    )
    price = Tariff(price_explicit=1.0, price_donated=1.0)
    driver = SimulatedDriver(sites, Broker(dict.fromkeys(sites, terms)), dict.fromkeys(sites, price))
    world = World(sites, driver)
    world.now = begin
    tasks, seconds = 2 * scenes[0].tasks * len(scenes), scenes[0].seconds * stretch
    spread = np.random.default_rng(seed).uniform(0.25, 1.75, tasks) if unequal else np.ones(tasks)
    bag = Bag(1, BagSpec(name="", cwd="", output="", environment={}), tasks)
    bag.fill()
    world.add_bag(bag, lambda key, _site: Attempt(float(spread[key.task] * seconds)))
    world.run(_GIVEN_UP)
    return max(end.at for end in world.ended) - begin if bag.ended else _GIVEN_UP


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scenes", type=int, default=24)
    parser.add_argument("--sites", type=int, default=2)
    parser.add_argument("--stretch", type=float, default=10.0)
    parser.add_argument("--unequal", action="store_true", help="Tasks take 0.25 to 1.75 of their mean")
    parser.add_argument("--heuristics", nargs=2, default=["adaptive", "completion"], metavar=("BASE", "NEW"))
    chosen = parser.parse_args()
    ratios = []
    for number in range(chosen.scenes):
        scenes = [scene_of(1000 + number + 500 * site) for site in range(chosen.sites)]
        base, new = (
            turnaround(scenes, heuristic, chosen.stretch, unequal=chosen.unequal, seed=number)
            for heuristic in chosen.heuristics
        )
        ratios.append(base / new)
    mean, low, high = interval(ratios)
    base, new = chosen.heuristics
    print(f"{new} completes bags {mean:.2f} [{low:.2f}, {high:.2f}] times as fast as {base}", end="")
    print(f" (worst {min(ratios):.2f}, best {max(ratios):.2f})")


if __name__ == "__main__":
    main()
