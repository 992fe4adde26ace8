"""Each number of the papers' tables and figures, next to ours."""

from __future__ import annotations

import math

import numpy as np

from adaptor_experiments.a2ha.bags import IMAGE, NORMAL, TESTING, WHOLE_HOUR, fixed
from adaptor_experiments.a2ha.design import Row, Settings
from adaptor_experiments.a2ha.examples import FIVE_MINUTES, predicted
from adaptor_experiments.a2ha.paper_presets import AS_THE_TABLE
from adaptor_experiments.figures.exhibits import Exhibit
from adaptor_experiments.tables import Figure, Mean, Runs, texts

NEAR = 0.05  # a mean agrees that is so near to the paper's, or that rounds to it
FEW_HOSTS = 13  # the example of both papers for speedups (2011, §4.2; 2008, §5)
_CLOSE = 0.25
_HOUR, _MINUTE = 3600.0, 60.0
ENDS: dict[str, Figure] = {
    "charged hours": "units",
    "interrupted tasks": "cut",
    "wasted minutes": lambda row: row.wasted / _MINUTE,
    "continued hosts": "continued",
}
"""The columns of Table 1."""
LONG: dict[str, Figure] = {
    "hosts": "hosts",
    "time (h)": lambda row: row.wall / _HOUR,
    "speedup": "speedup",
    "payment (h)": "units",
}
"""The columns of Table 2."""
_PRESETS = {2011: ("conservative", "aggressive"), 2008: ("conservative-2008", "aggressive-2008")}


def published(rows: Runs[Row], bag: str, preset: str) -> Runs[Row]:
    """The runs of a bag with a preset that buys as the papers print it."""
    return rows.where(bag=bag, preset=preset, bought="as published")


def without_estimator(rows: Runs[Row]) -> dict[str, dict[str, Mean]]:
    """Table 2, serial and optimal, by the runs with one host for each task: by column."""
    one_per_task = rows.where(experiment="long", initial=256, preset=AS_THE_TABLE.name)
    one, serial = Mean(1, 0), one_per_task.spread(lambda row: row.work / _HOUR)
    least, fastest = one_per_task.spread(LONG["time (h)"]), one_per_task.spread("speedup")
    lines = {"serial": (one, serial, one, serial), "optimal": (fastest, least, fastest, serial)}
    return {name: dict(zip(LONG, means, strict=True)) for name, means in lines.items()}


def is_near(ours: Mean, printed: float) -> bool:
    return abs(ours.value - printed) <= NEAR * printed or round(ours.value) == printed


def comparison(rows: Runs[Row], settings: Settings) -> Exhibit:
    """Each number of the papers, ours, and the reason where the two differ."""
    page = texts("a2ha")
    beside = _Beside(rows)
    beside.of_the_bags(settings)
    beside.of_the_text()
    beside.of_the_tables()
    lines = page.compared(beside.ours, beside.agree)
    exhibit = page.exhibit("comparison", [line[:5] for line in lines], near=NEAR)
    return page.explained(exhibit, (reason for *_, reason, _ in lines))


class _Beside:
    """Ours by the key of the paper's number, and the keys of those that agree."""

    def __init__(self, rows: Runs[Row]) -> None:
        self._rows = rows
        self.ours: dict[str, str] = {}
        self.agree: set[str] = set()

    def _say(self, key: str, ours: str, agrees: bool = True) -> None:
        self.ours[key] = ours
        if agrees:
            self.agree.add(key)

    def of_the_bags(self, settings: Settings) -> None:
        low, middle, high = predicted(settings)
        near = (high[24] - low[24]) / 2 / middle[-1]
        self._say("first prediction", f"{middle[0]:.0f} ({low[0]:.0f} to {high[0]:.0f})", False)
        self._say("last prediction", f"{math.ceil(middle[-1])}", False)
        self._say("near", f"25: within {near:.0%} in 90 % of orders")
        self._say("rounded", f"{math.ceil(23 * 0.4)}", False)
        self._say("ratio", f"{1 - 0.6 * 0.5**10:.3f} from 0.4 by 0.5")
        unit, most = WHOLE_HOUR.unit, FIVE_MINUTES.count
        best = math.ceil(FIVE_MINUTES.count * FIVE_MINUTES.runtime / unit)
        charged = [FIVE_MINUTES.charged_units(hosts, unit) for hosts in range(1, most + 1)]
        self._say("charged", str(charged[-1]))
        self._say("least charged", str(min(charged)))
        self._say("best", f"{best} and {FIVE_MINUTES.speedup(best):g}")
        self._say("amplitude", f"{np.ptp(fixed(IMAGE.key)) / _MINUTE:g}", False)

    def of_the_text(self) -> None:
        grid = self._rows.where(experiment="grid-2011")
        for kind in (IMAGE, NORMAL, TESTING):
            optimal = grid.where(bag=kind.key)[0].optimal
            self._say(f"optimum {kind.key}", str(optimal), optimal == kind.optimal)
        for experiment, bags in (("grid-2011", (IMAGE, TESTING)), ("grid-2008", (IMAGE, NORMAL))):
            for kind in bags:
                least, middle, most = excesses(self._rows, experiment, kind.key)
                self._say(f"{experiment} {kind.key}", f"{middle:.0%} ({least:.0%} to {most:.0%})", False)
        for year, presets in _PRESETS.items():
            self._of_presets(year, presets)
        efficiencies = [
            (row.speedup / row.hosts)
            for bag in (IMAGE.key, NORMAL.key)
            for preset in _PRESETS[2011]
            for row in published(self._rows, bag, preset)
        ]
        self._say("efficiency", f"{min(efficiencies):.0%} at the least", min(efficiencies) > 0.5)

    def _of_presets(self, year: int, presets: tuple[str, str]) -> None:
        """Speedups of few hosts, which are never enough for the image rendering, and its hosts."""
        low, high = texts("a2ha").numbers[f"speedup {year}"].paper.split(" to ")
        few = [
            row.speedup
            for preset in presets
            for row in published(self._rows, NORMAL.key, preset)
            if row.hosts == FEW_HOSTS
        ]
        ours = f"{min(few):.1f} to {max(few):.1f}" if few else "no such run"
        self._say(f"speedup {year}", ours, bool(few) and float(low) < float(np.mean(few)) < float(high))
        image = {preset: published(self._rows, IMAGE.key, preset) for preset in presets}
        most = max(row.hosts / row.optimal for row in image[presets[1]])
        self._say(f"most {year}", f"{most:.1f}", abs(most - 2) < _CLOSE)
        least = [min(row.hosts for row in image[preset]) for preset in presets]
        self._say(f"least {year}", " and ".join(map(str, least)), least[0] == least[1])

    def of_the_tables(self) -> None:
        numbers = texts("a2ha").numbers
        for bag in ("image", "normal", "testing"):
            runs = published(self._rows, bag, "conservative")
            for what, figure in ENDS.items():
                key, ours = f"table 1 {bag}: {what}", runs.spread(figure)
                self._say(key, ours.shown(), is_near(ours, numbers[key].value))
        for name, means in without_estimator(self._rows).items():
            for what, ours in means.items():
                self._say(f"table 2 {name}: {what}", ours.shown(2))
        as_the_table = self._rows.where(experiment="long", preset=AS_THE_TABLE.name)
        for first, runs in as_the_table.by("initial").items():
            for what, figure in LONG.items():
                key, ours = f"table 2 {first}: {what}", runs.spread(figure)
                late = numbers[key].reason == "found out later"
                self._say(key, ours.shown(2), late and is_near(ours, numbers[key].value))


def excesses(rows: Runs[Row], experiment: str, bag: str) -> tuple[float, float, float]:
    """Hosts above the optimum by the ratios of a grid: the least, that of 0.5 and 0.5, and the most."""
    by_ratios = rows.where(experiment=experiment, bag=bag).by("creation", "increase")
    found = {ratios: runs.mean("excess") - 1 for ratios, runs in by_ratios.items()}
    return min(found.values()), found[0.5, 0.5], max(found.values())
