"""Figures that follow from the bags alone: 2008, Fig. 1, and 2011, Fig. 8."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from adaptor.figures.canvas import Drawing, save
from adaptor_experiments.a2ha import published
from adaptor_experiments.a2ha.bags import (
    IMAGE,
    IMAGE_LISTS,
    NORMAL,
    TESTING,
    TESTING_LISTS,
    WHOLE_HOUR,
    Kind,
    runtimes,
)
from adaptor_experiments.a2ha.design import Settings
from adaptor_experiments.a2ha.examples import FIVE_MINUTES
from adaptor_experiments.a2ha.published import Seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROOM = 1.5
"""Above the highest bar, for the legend."""
_TIGHT = 60
"""Hosts; beyond, the two curves only go on."""


def figure_2008_1(folder: Path) -> Drawing:
    """Hours charged and speedup of equal tasks, by hosts: all of them, and where the least is charged."""

    def draw(plots: Sequence[Axes]) -> None:
        for axes, most in zip(plots, (FIVE_MINUTES.count, _TIGHT), strict=True):
            hosts = np.arange(1, most + 1)
            charged = [FIVE_MINUTES.charged_units(int(number), WHOLE_HOUR.unit) for number in hosts]
            gained = [FIVE_MINUTES.speedup(int(number)) for number in hosts]
            axes.step(hosts, charged, where="mid", color="C3", linewidth=1.2, label="hours charged")
            axes.step(hosts, gained, where="mid", color="C0", label="speedup")
            axes.set_xlabel("hosts")
            axes.set_ylim(bottom=0)
            axes.set_xlim(0, most)
            axes.grid(color="#dddddd", linewidth=0.6)
        best = int(FIVE_MINUTES.count * FIVE_MINUTES.runtime / WHOLE_HOUR.unit)
        plots[1].axvline(best, color="black", linestyle="--", linewidth=0.8)
        plots[1].annotate(
            f"{best} hosts: {best} h, speedup {best}",
            (best, best),
            (best + 4, 8),
            arrowprops={"arrowstyle": "->", "linewidth": 0.8},
        )
        plots[0].legend(loc="upper left")

    caption = "2008, Fig. 1: 300 tasks of 5 minutes: hours charged and speedup (right: the first 60 hosts)"
    return save(folder / "figure-2008-1.svg", caption, 2, draw)


def figure_8(settings: Settings, folder: Path) -> Drawing:
    """How many tasks take how long, in the bags that stand for the paper's, and in the other lists."""

    def draw(plots: Sequence[Axes]) -> None:
        _histogram(plots[0], (IMAGE, *IMAGE_LISTS), np.arange(0.0, 600.0, 25.0), settings)
        _histogram(plots[1], (NORMAL,), np.arange(50.0, 260.0, 10.0), settings)
        _histogram(plots[2], (TESTING, *TESTING_LISTS), np.geomspace(0.5, 2100.0, 30), settings)
        plots[2].set_xscale("log")
        for at, style, label in (
            (published.TESTING_MEDIAN, "--", "published: half below 30 s"),
            (published.TESTING_LONG, ":", "published: few above 15 minutes"),
        ):
            plots[2].axvline(at, color="black", linestyle=style, linewidth=0.8, label=label)
        plots[2].set_ylim(top=_ROOM * plots[2].get_ylim()[1])
        plots[2].legend(fontsize="small")

    caption = "Fig. 8 (2008, Fig. 4): runtimes of our bags; lines: other lists with the published statistics"
    return save(folder / "figure-8.svg", caption, 3, draw)


def _histogram(axes: Axes, kinds: Sequence[Kind], edges: Seconds, settings: Settings) -> None:
    first, *others = kinds
    axes.hist(runtimes(first, settings.seed, 0), bins=list(edges), color="#9ecae1", label=first.title)
    for place, kind in enumerate(others):
        counts, _ = np.histogram(runtimes(kind, settings.seed, 0), edges)
        axes.stairs(counts, edges, color=f"C{place + 1}", linewidth=1.1, label=kind.title)
    axes.set_xlabel("runtime (s)")
    axes.set_ylabel("tasks")
    axes.legend(fontsize="small")
