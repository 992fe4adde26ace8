"""The figures of the papers, drawn from our results, and what follows from the bags alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from adaptor.budget.accounting.tariffs import begun_units
from adaptor.budget.provisioning.presets import Preset
from adaptor_experiments.a2ha.bags import (
    IMAGE,
    IMAGE_LISTS,
    KINDS,
    NORMAL,
    TESTING,
    TESTING_LISTS,
    TESTING_LONG,
    TESTING_MEDIAN,
    WHOLE_HOUR,
    Kind,
    Seconds,
    optimal_hosts,
    runtimes,
)
from adaptor_experiments.a2ha.design import CREATION, INCREASE, Row, Settings
from adaptor_experiments.a2ha.simulation import CloudRun
from adaptor_experiments.figures.canvas import Drawing, Panels
from adaptor_experiments.tables import Figure, Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_HOUR = 3600.0
_ROOM = 1.5  # above the highest bar, for the legend
_TIGHT = 60  # hosts; beyond, the two curves only go on


_MOST = 40  # orders that are enough for a smooth line


class EqualTasks(msgspec.Struct, frozen=True):
    """A bag of tasks of one known runtime, in seconds, on a fixed number of hosts."""

    count: int
    runtime: float

    def speedup(self, hosts: int) -> float:
        """Over one host, where each host takes the next task when it has ended one."""
        return self.count / math.ceil(self.count / hosts)

    def charged(self, hosts: int) -> int:
        """Begun hours of all hosts: some have run one task more than the others."""
        least, more = divmod(self.count, hosts)
        return sum(
            number * begun_units(run * self.runtime, WHOLE_HOUR.unit)
            for number, run in ((hosts - more, least), (more, least + 1))
        )


FIVE_MINUTES = EqualTasks(300, 300.0)
"""2008, §1 and Fig. 1: 25 hours of work."""
BEST = math.ceil(FIVE_MINUTES.count * FIVE_MINUTES.runtime / WHOLE_HOUR.unit)
"""Hosts that are charged for the work alone."""


def predicted(settings: Settings) -> Seconds:
    """Hosts predicted from the first tasks: 5 %, 50 % and 95 % of the orders, by tasks (Fig. 4b)."""
    orders = np.array([runtimes(IMAGE, settings.seed, order) for order in range(settings.orders)])
    tasks = orders.shape[1]
    means = np.cumsum(orders, axis=1) / np.arange(1, tasks + 1)
    found: Seconds = np.quantile(means * tasks / IMAGE.terms.usable, [0.05, 0.5, 0.95], axis=0)
    return found


def bought_with(creation: float, increase: float, settings: Settings) -> Seconds:
    """Hosts bought so far by finished tasks, mean of the orders (Fig. 6b)."""
    preset = Preset(name="growth", creation_ratio=creation, increase_ratio=increase)
    lines = []
    for order in range(min(settings.orders, _MOST)):
        run = CloudRun(runtimes(IMAGE, settings.seed, order).tolist(), IMAGE.terms, preset)
        run.finish()
        lines.append(run.history)
    means: Seconds = np.array(lines, np.float64).mean(axis=0)
    return means


def published(rows: Runs[Row], bag: str, preset: str) -> Runs[Row]:
    """The runs of a bag with a preset that buys as the papers print it."""
    return rows.where(bag=bag, preset=preset, bought="as published")


def draw_figures(rows: Runs[Row], settings: Settings, folder: Path) -> list[Drawing]:
    """All of them, as PNG and SVG. Raises ReplayError: the folder cannot be written."""
    grids = {
        "figure-9": ("Fig. 9", "grid-2011", "image"),
        "figure-10": ("Fig. 10", "grid-2011", "normal"),
        "figure-11": ("Fig. 11", "grid-2011", "testing"),
        "figure-demo": ("As Figs 9 to 11, the demo's measured parts", "grid-2011", "demo"),
        "figure-2008-5": ("2008, Fig. 5", "grid-2008", "image"),
        "figure-2008-6": ("2008, Fig. 6", "grid-2008", "normal"),
    }
    drawn = [
        _grid(name, figure, rows.where(experiment=experiment, bag=bag), folder)
        for name, (figure, experiment, bag) in grids.items()
    ]
    return [
        figure_8(settings, folder),
        _figure_4(settings, folder),
        _figure_6(settings, folder),
        *drawn[:4],
        figure_2008_1(folder),
        *drawn[4:],
        _speedups("figure-12", "Fig. 12", rows, ("conservative", "aggressive", "frugal"), folder),
        _speedups("figure-2008-7", "2008, Fig. 7", rows, ("conservative-2008", "aggressive-2008"), folder),
    ]


def _figure_4(settings: Settings, folder: Path) -> Drawing:
    panels = Panels(2)
    tasks, hosts = panels.plots
    order = runtimes(IMAGE, settings.seed, 0)
    count = np.arange(1, len(order) + 1)
    tasks.plot(count, order, ".", markersize=3, color="C7", label="a task")
    tasks.plot(count, np.cumsum(order) / count, color="C0", label="mean so far")
    low, middle, high = predicted(settings)
    hosts.fill_between(count, low, high, alpha=0.3, label="90 % of the orders")
    hosts.plot(count, middle, label="median")
    hosts.axhline(optimal_hosts(float(order.sum()), IMAGE.terms), color="black", linestyle="--")
    tasks.set(xlabel="finished tasks", ylabel="runtime (s)")
    hosts.set(xlabel="finished tasks", ylabel="hosts predicted", ylim=(0, 50))
    for axes in panels.plots:
        axes.legend()
    caption = "Fig. 4: random task selection, image rendering: runtimes in one order; hosts predicted"
    return panels.save(folder / "figure-4.svg", caption)


def _figure_6(settings: Settings, folder: Path) -> Drawing:
    panels = Panels(2)
    ratios, hosts = panels.plots
    for increase in INCREASE:
        ratio = 1 - 0.5 * (1 - increase) ** np.arange(16)
        ratios.plot(ratio, marker="o", markersize=3, label=f"increaseRatio {increase:g}")
    for label, creation in (("without correction", 1.0), ("creationRatio 0.4", 0.4)):
        hosts.plot(bought_with(creation, 0.5, settings), label=label)
    hosts.axhline(IMAGE.optimal or 0, color="black", linestyle="--")
    ratios.set(xlabel="finished tasks", ylabel="creationRatio, from 0.5")
    hosts.set(xlabel="finished tasks", ylabel="hosts bought, mean of the orders")
    hosts.set_ylim(bottom=0)
    for axes in panels.plots:
        axes.legend()
    caption = "Fig. 6: what the ratios do; the hosts of the image rendering, increaseRatio 0.5"
    return panels.save(folder / "figure-6.svg", caption)


def _grid(name: str, figure: str, runs: Runs[Row], folder: Path) -> Drawing:
    bag = runs[0].bag
    wall: Figure = "wall" if bag == "demo" else lambda row: row.wall / _HOUR
    panels = Panels(2)
    times, hosts = panels.plots
    for increase in INCREASE:
        line = runs.where(increase=increase).by("creation").values()
        for axes, of in zip(panels.plots, (wall, "hosts"), strict=True):
            means = [some.spread(of) for some in line]
            axes.errorbar(
                np.array(CREATION) + (increase - 0.5) / 20,
                [mean.value for mean in means],
                [mean.deviation for mean in means],
                marker="o",
                markersize=4,
                elinewidth=0.8,
                label=f"increaseRatio {increase:g}",
            )
    hosts.axhline(runs[0].optimal, color="black", linestyle="--", label="optimal")
    hosts.legend()
    times.set(xlabel="creationRatio", ylabel=f"time to the last result ({'s' if bag == 'demo' else 'h'})")
    hosts.set(xlabel="creationRatio", ylabel="hosts bought")
    for axes in panels.plots:
        axes.set_ylim(bottom=0)
    caption = f"{figure}: {KINDS[bag].title} (bars: standard deviation between the orders)"
    return panels.save(folder / f"{name}.svg", caption)


def _speedups(name: str, figure: str, every: Runs[Row], presets: Sequence[str], folder: Path) -> Drawing:
    panels = Panels(2)
    for axes, bag in zip(panels.plots, ("image", "normal"), strict=True):
        for place, preset in enumerate(presets):
            rows = published(every, bag, preset)
            hosts = rows.values("hosts") + (place - 1) / 5
            axes.plot(hosts, rows.values("speedup"), "osD"[place], markersize=3, alpha=0.5, label=preset)
        top = max(axes.get_xlim()[1], axes.get_ylim()[1])
        axes.plot([0, top], [0, top], color="black", linewidth=0.6)
        axes.set_title(KINDS[bag].title, fontsize="medium")
        axes.set(xlabel="hosts bought", ylabel="speedup")
    axes.legend()
    return panels.save(folder / f"{name}.svg", f"{figure}: speedup and hosts (the line: equal)")


def figure_2008_1(folder: Path) -> Drawing:
    """Hours charged and speedup of equal tasks, by hosts: all of them, and where the least is charged."""
    panels = Panels(2)
    for axes, most in zip(panels.plots, (FIVE_MINUTES.count, _TIGHT), strict=True):
        hosts = range(1, most + 1)
        charged, gained = (list(map(of, hosts)) for of in (FIVE_MINUTES.charged, FIVE_MINUTES.speedup))
        axes.step(hosts, charged, where="mid", color="C3", linewidth=1.2, label="hours charged")
        axes.step(hosts, gained, where="mid", color="C0", label="speedup")
        axes.set(xlabel="hosts", xlim=(0, most))
        axes.set_ylim(bottom=0)
        axes.grid(color="#dddddd", linewidth=0.6)
    axes.axvline(BEST, color="black", linestyle="--", linewidth=0.8)
    arrow = {"arrowstyle": "->", "linewidth": 0.8}
    axes.annotate(f"{BEST} hosts: {BEST} h, speedup {BEST}", (BEST, BEST), (BEST + 4, 8), arrowprops=arrow)
    panels.first.legend(loc="upper left")
    caption = "2008, Fig. 1: 300 tasks of 5 minutes: hours charged and speedup (right: the first 60 hosts)"
    return panels.save(folder / "figure-2008-1.svg", caption)


def figure_8(settings: Settings, folder: Path) -> Drawing:
    """Distribution of runtimes in the bags that stand for the paper's, and in the other lists."""
    panels = Panels(3)
    image, normal, testing = panels.plots
    _histogram(image, (IMAGE, *IMAGE_LISTS), np.arange(0.0, 600.0, 25.0), settings)
    _histogram(normal, (NORMAL,), np.arange(50.0, 260.0, 10.0), settings)
    _histogram(testing, (TESTING, *TESTING_LISTS), np.geomspace(0.5, 2100.0, 30), settings)
    testing.set_xscale("log")
    for at, style, label in (
        (TESTING_MEDIAN, "--", "published: half below 30 s"),
        (TESTING_LONG, ":", "published: few above 15 minutes"),
    ):
        testing.axvline(at, color="black", linestyle=style, linewidth=0.8, label=label)
    testing.set_ylim(top=_ROOM * testing.get_ylim()[1])
    testing.legend(fontsize="small")
    caption = "Fig. 8 (2008, Fig. 4): runtimes of our bags; lines: other lists with the published statistics"
    return panels.save(folder / "figure-8.svg", caption)


def _histogram(axes: Axes, kinds: Sequence[Kind], edges: Seconds, settings: Settings) -> None:
    first, *others = kinds
    axes.hist(runtimes(first, settings.seed, 0), bins=list(edges), color="#9ecae1", label=first.title)
    for place, kind in enumerate(others):
        counts, _ = np.histogram(runtimes(kind, settings.seed, 0), edges)
        axes.stairs(counts, edges, color=f"C{place + 1}", linewidth=1.1, label=kind.title)
    axes.set(xlabel="runtime (s)", ylabel="tasks")
    axes.legend(fontsize="small")
