"""The tables next to those of the papers, where they agree, and the page."""

from __future__ import annotations

from pathlib import Path

from adaptor_experiments.a2ha.bags import IMAGE, IMAGE_LISTS, KINDS, TESTING, TESTING_LISTS
from adaptor_experiments.a2ha.design import Row, Settings, pieces, run_piece
from adaptor_experiments.a2ha.figures import draw_figures
from adaptor_experiments.a2ha.numbers import ENDS, LONG, comparison, excesses, published
from adaptor_experiments.experiment import Experiment, planned
from adaptor_experiments.figures.exhibits import Exhibit, Report
from adaptor_experiments.tables import Runs, texts

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
