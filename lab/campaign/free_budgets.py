"""Bags with a budget that does not bind, beside the same bags without one.

Each bag runs at simulated sites by the broker, the planner and the ledger of the daemon, first without a
budget, then with multiples of what it cost without one. A budget of one and a half times that binds nothing.

    python -m lab.campaign.free_budgets --heuristic elastic --heuristic adaptive
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import click
import msgspec
import numpy as np

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.model import Limits
from adaptor_experiments.forecasts.site_run import CheckedSite, Outcome, submitted

PROCESSORS, REQUESTS, PILOTS = 64, 4, 500  # of all sites together; requests and pilots at each
LONGEST = 400 * 3600  # seconds after which a bag is given up
LATER = 1.05  # times the end without a budget, up to which a bag is no later


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A bag, the sites, and the knowledge of its user."""

    bag: int
    seed: int
    heuristic: str
    unit: int
    """Charging unit in seconds."""
    told: bool
    """Whether the user says how long a task takes on average."""
    sites: int = 1

    @property
    def runtimes(self) -> list[float]:
        """Runtimes of the tasks in seconds: 8 to 400 tasks of 10 s to half an hour on average, equal,
        uniform, exponential, log-normal, or a few far longer than the others."""
        draw = np.random.default_rng((self.seed, self.bag))
        tasks, mean = int(np.exp(draw.uniform(*np.log((8, 400))))), np.exp(draw.uniform(*np.log((10, 1800))))
        found = (
            np.ones(tasks),
            draw.uniform(0.5, 1.5, tasks),
            draw.exponential(1.0, tasks),
            draw.lognormal(-0.5, 1.0, tasks),
            np.where(draw.random(tasks) < 0.1, 6.0, 0.45),
        )[self.bag % 5]
        return [float(each) for each in mean * found]

    def run(self, budget: float | None = None) -> Outcome:
        return run(self.runtimes, self.heuristic, budget, self.unit, told=self.told, sites=self.sites)


def run(
    runtimes: Sequence[float],
    heuristic: str,
    budget: float | None = None,
    unit: int = 1,
    *,
    told: bool = False,
    sites: int = 1,
) -> Outcome:
    """A bag at an empty site, or at several that have as many processors together; the later the dearer.

    Args:
        runtimes: of the tasks, rounded to whole seconds.
        budget: credits; None: no limit.
        unit: seconds that are charged as a whole.
        told: whether the user says how long a task takes on average.
    """
    tasks = [float(max(1, round(each))) for each in runtimes]
    there = [
        CheckedSite(
            name=f"site {number}",
            tariff=Tariff(price_explicit=1 + number / 2, price_donated=1, charging_unit=unit),
            processors=PROCESSORS // sites,
            limits=Limits(
                max_pending_requests=REQUESTS,
                max_pilots=PILOTS * (heuristic == "elastic"),
                max_proc=PROCESSORS // REQUESTS // sites,
                max_tr=24 * 3600,
            ),
            heuristic=heuristic,
            initial_tr=HEURISTICS[heuristic].assumed_runtime,
        )
        for number in range(sites)
    ]
    mean = math.fsum(tasks) / len(tasks) if told else None
    bag = submitted(
        tasks, *there, budget=budget, time=mean, pays=budget is not None, order="random", foresees=False
    )
    return bag.run(longest=LONGEST)


class Compared(msgspec.Struct, frozen=True):
    """A bag with a budget beside the same one without."""

    scene: Scene
    multiple: float
    """The budget over the cost without one."""
    later: float
    """Its end over the end without a budget; infinity: not all tasks were done."""
    exceeded: bool


def compared(scene: Scene, multiples: tuple[float, ...]) -> list[Compared]:
    plain, found = scene.run(), list[Compared]()
    for multiple in multiples:
        paid = scene.run(multiple * plain.cost)
        later = paid.end / plain.end if paid.done == plain.done else math.inf
        found.append(Compared(scene, multiple, later, paid.cost > multiple * plain.cost * (1 + 1e-9)))
    return found


def table(rows: list[Compared]) -> Iterator[str]:
    """A line of Markdown for each heuristic, charging unit, knowledge and multiple."""
    heads = "heuristic", "unit, s", "`--time`", "budget", "bags", "later", "worst", "not done", "exceeded"
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    by_kind = defaultdict[tuple[str, int, bool, float], list[Compared]](list)
    for row in rows:
        by_kind[row.scene.heuristic, row.scene.unit, row.scene.told, row.multiple].append(row)
    for (heuristic, unit, told, multiple), some in by_kind.items():
        done = [row.later for row in some if row.later < math.inf]
        later, exceeded = sum(each > LATER for each in done), sum(row.exceeded for row in some)
        worst = max(done, default=math.nan)
        yield (
            f"| {heuristic} | {unit} | {'yes' if told else 'no'} | {multiple:g} | {len(some)} | {later} "
            f"| {worst:.2f} | {len(some) - len(done)} | {exceeded} |"
        )


@click.command()
@click.option("--heuristic", "heuristics", multiple=True, default=["elastic"], help="May be repeated.")
@click.option("--unit", "units", multiple=True, default=[1, 3600], help="Charging unit, s.")
@click.option("--told", type=bool, multiple=True, default=[False, True], help="With --time.")
@click.option("--times", "multiples", multiple=True, default=[1.5, 2.0, 5.0], help="The plain cost.")
@click.option("--sites", default=1, help="The second is half as dear again, and so on.")
@click.option("--bags", default=30)
@click.option("--seed", default=1)
@click.option("--processes", default=2)
def main(
    heuristics: tuple[str, ...],
    units: tuple[int, ...],
    told: tuple[bool, ...],
    multiples: tuple[float, ...],
    sites: int,
    bags: int,
    seed: int,
    processes: int,
) -> None:
    """Compare bags whose budget does not bind with the same bags without one."""
    scenes = [
        Scene(bag=bag, seed=seed, heuristic=heuristic, unit=unit, told=known, sites=sites)
        for heuristic, unit, known, bag in itertools.product(heuristics, units, told, range(bags))
    ]
    rows = list[Compared]()
    with ProcessPoolExecutor(processes) as pool:
        for found in pool.map(compared, scenes, itertools.repeat(multiples)):
            rows += found
            for row in found:
                if row.later > LATER or row.exceeded:
                    click.echo(f"{row.later:.2f} × as late at {row.multiple:g}: {row.scene}", err=True)
    click.echo("\n".join(table(rows)))


if __name__ == "__main__":
    main()
