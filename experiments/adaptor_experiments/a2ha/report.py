"""Each number of the papers, next to ours; the tables next to those of the papers, and the page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from adaptor_experiments.a2ha.bags import (
    IMAGE,
    IMAGE_LISTS,
    KINDS,
    NORMAL,
    TESTING,
    TESTING_LISTS,
    fixed,
)
from adaptor_experiments.a2ha.design import Row, Settings, pieces, run_piece
from adaptor_experiments.a2ha.figures import BEST, FIVE_MINUTES, draw_figures, predicted, published
from adaptor_experiments.a2ha.paper_presets import AS_THE_TABLE
from adaptor_experiments.experiment import Experiment, planned
from adaptor_experiments.figures.exhibits import Exhibit, Report
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

Ours = Iterator[tuple[str, str, bool]]
"""The key of a number of the paper, what it is here, and whether the two agree though the texts differ."""


def comparison(rows: Runs[Row], settings: Settings) -> Exhibit:
    """Each number of the papers, ours, and the reason where the two differ."""
    page = texts("a2ha")
    found = [*_of_the_bags(settings), *_of_the_text(rows), *_of_the_tables(rows)]
    agree = {key for key, _, agrees in found if agrees}
    lines = page.compared({key: ours for key, ours, _ in found}, agree)
    exhibit = page.exhibit("comparison", [line[:5] for line in lines], near=NEAR)
    return page.explained(exhibit, (reason for *_, reason, _ in lines))


def _of_the_bags(settings: Settings) -> Ours:
    low, middle, high = predicted(settings)
    near = (high[24] - low[24]) / 2 / middle[-1]
    charged = [FIVE_MINUTES.charged(hosts) for hosts in range(1, FIVE_MINUTES.count + 1)]
    yield "first prediction", f"{middle[0]:.0f} ({low[0]:.0f} to {high[0]:.0f})", False
    yield "last prediction", f"{math.ceil(middle[-1])}", False
    yield "near", f"25: within {near:.0%} in 90 % of orders", True
    yield "rounded", f"{math.ceil(23 * 0.4)}", False
    yield "ratio", f"{1 - 0.6 * 0.5**10:.3f} from 0.4 by 0.5", True
    yield "charged", str(charged[-1]), True
    yield "least charged", str(min(charged)), True
    yield "best", f"{BEST} and {FIVE_MINUTES.speedup(BEST):g}", True
    yield "amplitude", f"{np.ptp(fixed(IMAGE.key)) / _MINUTE:g}", False


def _of_the_text(rows: Runs[Row]) -> Ours:
    for kind in (IMAGE, NORMAL, TESTING):
        optimal = rows.where(experiment="grid-2011", bag=kind.key)[0].optimal
        yield f"optimum {kind.key}", str(optimal), optimal == kind.optimal
    for experiment, bags in (("grid-2011", (IMAGE, TESTING)), ("grid-2008", (IMAGE, NORMAL))):
        for kind in bags:
            least, middle, most = excesses(rows, experiment, kind.key)
            yield f"{experiment} {kind.key}", f"{middle:.0%} ({least:.0%} to {most:.0%})", False
    for year in _PRESETS:
        yield from _of_presets(rows, year)
    efficiency = min(
        (row.speedup / row.hosts)
        for bag in (IMAGE.key, NORMAL.key)
        for preset in _PRESETS[2011]
        for row in published(rows, bag, preset)
    )
    yield "efficiency", f"{efficiency:.0%} at the least", efficiency > 0.5


def _of_presets(rows: Runs[Row], year: int) -> Ours:
    """Speedups of few hosts, which are never enough for the image rendering, and its hosts."""
    low, high = map(float, texts("a2ha").numbers[f"speedup {year}"].paper.split(" to "))
    normal = (row for preset in _PRESETS[year] for row in published(rows, NORMAL.key, preset))
    few = [row.speedup for row in normal if row.hosts == FEW_HOSTS]
    ours = f"{min(few):.1f} to {max(few):.1f}" if few else "no such run"
    yield f"speedup {year}", ours, bool(few) and low < float(np.mean(few)) < high
    image = [published(rows, IMAGE.key, preset) for preset in _PRESETS[year]]
    most = max(row.excess for row in image[1])
    yield f"most {year}", f"{most:.1f}", abs(most - 2) < _CLOSE
    least = [min(row.hosts for row in runs) for runs in image]
    yield f"least {year}", " and ".join(map(str, least)), least[0] == least[1]


def _of_the_tables(rows: Runs[Row]) -> Ours:
    numbers = texts("a2ha").numbers
    for bag in ("image", "normal", "testing"):
        runs = published(rows, bag, "conservative")
        for what, figure in ENDS.items():
            key, ours = f"table 1 {bag}: {what}", runs.spread(figure)
            yield key, ours.shown(), _is_near(ours, numbers[key].value)
    as_the_table = rows.where(experiment="long", preset=AS_THE_TABLE.name).by("initial")
    # Table 2, serial and optimal: by the runs with one host for each task.
    alone = as_the_table[256]
    one, serial = Mean(1, 0), alone.spread(lambda row: row.work / _HOUR)
    optimal = (alone.spread("speedup"), alone.spread(LONG["time (h)"]), alone.spread("speedup"), serial)
    for name, means in (("serial", (one, serial, one, serial)), ("optimal", optimal)):
        for what, ours in zip(LONG, means, strict=True):
            yield f"table 2 {name}: {what}", ours.shown(2), True
    for first, runs in as_the_table.items():
        for what, figure in LONG.items():
            key, ours = f"table 2 {first}: {what}", runs.spread(figure)
            late = numbers[key].reason == "found out later"
            yield key, ours.shown(2), late and _is_near(ours, numbers[key].value)


def _is_near(ours: Mean, printed: float) -> bool:
    return abs(ours.value - printed) <= NEAR * printed or round(ours.value) == printed


def excesses(rows: Runs[Row], experiment: str, bag: str) -> tuple[float, float, float]:
    """Hosts above the optimum by the ratios of a grid: the least, that of 0.5 and 0.5, and the most."""
    by_ratios = rows.where(experiment=experiment, bag=bag).by("creation", "increase")
    found = {ratios: runs.mean("excess") - 1 for ratios, runs in by_ratios.items()}
    return min(found.values()), found[0.5, 0.5], max(found.values())


_HOUR = 3600.0
_CONCLUDED = {"as published": ("conservative", "aggressive", "frugal"), "daemon": ("balanced", "frugal")}


def report_of(rows: Runs[Row], settings: Settings, folder: Path) -> Report:
    """Raises ReplayError: a figure cannot be written."""
    return texts("a2ha").report(
        [_above_optimal(rows.where(experiment="presets", bag=bag)) for bag in ("image", "testing", "normal")],
        draw_figures(rows, settings, folder / "figures"),
        [comparison(rows, settings), *tables(rows)],
        settings=settings,
    )


def tables(rows: Runs[Row]) -> list[Exhibit]:
    page = texts("a2ha")
    presets = rows.where(experiment="presets").by("bag", "preset", "bought").values()
    numbers = texts("a2ha").numbers
    lines = []
    for experiment in ("grid-2011", "grid-2008"):
        for bag, runs in rows.where(experiment=experiment).by("bag").items():
            number = numbers.get(f"{experiment} {bag}")
            printed = [experiment[-4:], str(runs[0].optimal), number.paper if number else "-"]
            ours = (f"{excess:+.0%}" for excess in excesses(rows, experiment, bag))
            lines.append([KINDS[bag].title, *printed, *ours])
    return [
        page.exhibit("hosts", map(_hosts, presets)),
        page.exhibit("ratios", lines),
        page.exhibit("long", _long(rows)),
        page.exhibit("lists", _lists(rows)),
        page.exhibit("omitted"),
        page.exhibit("bags"),
    ]


def _above_optimal(presets: Runs[Row]) -> str:
    """Hosts above the optimal number, as published and as the daemon asks."""
    page, first = texts("a2ha"), presets[0]
    number = page.numbers.get(f"grid-2011 {first.bag}")

    def asked(bought: str) -> str:
        by_preset = presets.where(bought=bought).by("preset")
        return ", ".join(
            f"{name} {by_preset[name].mean('excess') - 1:+.0%}"
            for name in _CONCLUDED[bought]
            if name in by_preset
        )

    return page.say(
        "above",
        title=KINDS[first.bag].title,
        optimal=first.optimal,
        published=asked("as published"),
        paper=page.say("paper", excess=number.paper) if number else "",
        daemon=asked("daemon"),
    )


def _hosts(runs: Runs[Row]) -> list[str]:
    row = runs[0]
    unit, of = ("s", 1.0) if row.bag == "demo" else ("h", _HOUR)
    return [
        KINDS[row.bag].title,
        row.preset,
        row.bought,
        str(row.optimal),
        runs.spread("hosts").shown(),
        f"{runs.mean('excess') - 1:+.0%}",
        runs.spread("units").shown(),
        f"{runs.mean(lambda row: row.units / row.optimal) - 1:+.0%}",
        runs.spread(lambda row: row.wall / of).shown(2, f" {unit}"),
        runs.spread("speedup").shown(),
        *(f"{runs.mean(figure):.1f}" for figure in [*ENDS.values()][1:]),
    ]


def _lists(rows: Runs[Row]) -> list[list[str]]:
    return [
        [KINDS[kind.key].title, preset, *_hosts(published(rows, kind.key, preset))[3:9]]
        for kind in (IMAGE, *IMAGE_LISTS, TESTING, *TESTING_LISTS)
        for preset in _CONCLUDED["as published"]
    ]


def _long(rows: Runs[Row]) -> list[list[str]]:
    """The long tasks of Table 2, by the hosts to begin with."""
    return [
        [str(first), preset, *(some.spread(figure).shown(2) for figure in LONG.values())]
        for (first, preset), some in rows.where(experiment="long").by("initial", "preset").items()
    ]


EXPERIMENT = Experiment(row=Row, run=run_piece, plan=planned(Settings, pieces, report_of))
