"""The tables beside those of the papers, and where they agree."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.a2ha import paper
from adaptor_experiments.a2ha.bags import IMAGE, IMAGE_LISTS, KINDS, TESTING, TESTING_LISTS
from adaptor_experiments.a2ha.design import Row
from adaptor_experiments.a2ha.remarks import GRIDS, HOSTS, LISTS, OMITTED, TABLE_1, TABLE_2
from adaptor_experiments.a2ha.summary import Group, groups, pick

_HOUR = 3600.0


def tables(rows: Sequence[Row]) -> list[Exhibit]:
    presets = groups(rows, "presets")
    published = [each for each in presets if each.first.bought == "as published"]
    return [
        Exhibit(
            name="hosts",
            title="Hosts bought, and the optimal number",
            headings=_HOSTS,
            rows=[_hosts(each) for each in presets],
            remarks=HOSTS,
        ),
        Exhibit(
            name="ratios",
            title="Figs 9 to 11, and 5 and 6 of 2008: hosts above the optimal number",
            headings=_RATIOS,
            rows=_ratios(rows),
            remarks=GRIDS,
        ),
        Exhibit(
            name="table-1",
            title="Table 1: tasks interrupted as the charged time ends",
            headings=_TABLE_1,
            rows=_table_1(published),
            remarks=TABLE_1,
        ),
        Exhibit(
            name="table-2",
            title="Table 2: 256 long tasks of N(1.5 h, 20 min)",
            headings=_TABLE_2,
            rows=_table_2(rows),
            remarks=TABLE_2,
        ),
        Exhibit(
            name="lists",
            title="What the choice of a list decides: others with the published statistics",
            headings=_LISTS,
            rows=_lists(rows),
            remarks=LISTS,
        ),
        Exhibit(
            name="omitted",
            title="Figures that are not drawn",
            headings=("figure", "what it shows", "why it is omitted"),
            rows=[list(each) for each in OMITTED],
        ),
        Exhibit(
            name="bags",
            title="The bags",
            headings=("bag", "where it comes from"),
            rows=[[kind.title, kind.origin] for kind in KINDS.values()],
        ),
    ]


_CONCLUDED = {
    "as published": ("conservative", "aggressive", "frugal"),
    "daemon": ("balanced", "fast", "frugal"),
}


def conclusion(rows: Sequence[Row]) -> tuple[str, ...]:
    """In sentences: hosts above the optimal number, as published and as the daemon asks."""
    presets = groups(rows, "presets")
    return tuple(_above_optimal(presets, bag) for bag in ("image", "testing", "normal"))


def _above_optimal(presets: Sequence[Group], bag: str) -> str:
    def asked(bought: str) -> str:
        found = {
            each.first.preset: each.excess
            for each in presets
            if (each.first.bag, each.first.bought) == (bag, bought)
        }
        return ", ".join(f"{name} {found[name]:+.0%}" for name in _CONCLUDED[bought] if name in found)

    optimal = next(each.first.optimal for each in presets if each.first.bag == bag)
    printed = paper.EXCESS.get(("grid-2011", bag))
    said = f" (the paper of 2011: {printed} with suitable ratios)" if printed else ""
    return (
        f"{KINDS[bag].title}, optimal {optimal} hosts: as published, the presets buy {asked('as published')}"
        f"{said}; as the daemon asks, {asked('daemon')}."
    )


_HOSTS = ("bag", "preset", "asked", "optimal", "hosts", "above", "charged units", "above", "time", "speedup")


def _hosts(group: Group) -> list[str]:
    row = group.first
    return [
        KINDS[row.bag].title,
        row.preset,
        row.bought,
        str(row.optimal),
        group.mean(lambda each: each.hosts).shown(),
        f"{group.excess:+.0%}",
        group.mean(lambda each: each.units).shown(),
        f"{group.charged_excess:+.0%}",
        _time(group),
        group.mean(lambda each: each.speedup).shown(),
    ]


def _time(group: Group) -> str:
    demo = group.first.bag == "demo"
    mean = group.mean(lambda each: each.wall / (1.0 if demo else _HOUR))
    return f"{mean.shown(2)} {'s' if demo else 'h'}"


_RATIOS = ("bag", "paper", "optimal", "paper: above", "ours: least", "ours: 0.5 and 0.5", "ours: most")


def _ratios(rows: Sequence[Row]) -> list[list[str]]:
    lines = []
    for experiment in ("grid-2011", "grid-2008"):
        found = groups(rows, experiment)
        for bag in dict.fromkeys(each.first.bag for each in found):
            here = [each for each in found if each.first.bag == bag]
            middle = next(each for each in here if (each.first.creation, each.first.increase) == (0.5, 0.5))
            excesses = [each.excess for each in here]
            lines.append(
                [
                    KINDS[bag].title,
                    experiment[-4:],
                    str(here[0].first.optimal),
                    paper.EXCESS.get((experiment, bag), "-"),
                    f"{min(excesses):+.0%}",
                    f"{middle.excess:+.0%}",
                    f"{max(excesses):+.0%}",
                ]
            )
    return lines


_LISTS = ("list", "preset", "optimal", "hosts", "above", "charged units", "above", "time")


def _lists(rows: Sequence[Row]) -> list[list[str]]:
    found = [*groups(rows, "presets"), *groups(rows, "lists")]
    kinds = (IMAGE, *IMAGE_LISTS, TESTING, *TESTING_LISTS)
    return [
        [KINDS[group.first.bag].title, group.first.preset, *_hosts(group)[3:9]]
        for kind in kinds
        for preset in _CONCLUDED["as published"]
        for group in [pick(found, kind.key, preset)]
    ]


_TABLE_1 = ("bag", "", "charged", "interrupted tasks", "wasted", "continued hosts")


def _table_1(presets: Sequence[Group]) -> list[list[str]]:
    lines = []
    for bag, (hours, cut, wasted, continued) in paper.TABLE_1.items():
        lines.append([KINDS[bag].title, "paper", f"{hours} h", str(cut), f"{wasted} m", str(continued)])
        here = [each for each in presets if each.first.bag == bag and "2008" not in each.first.preset]
        lines += [["", each.first.preset, *_ends(each)] for each in here]
    return lines


def _ends(group: Group) -> list[str]:
    return [
        f"{group.mean(lambda row: row.units).value:.1f} h",
        f"{group.mean(lambda row: row.cut).value:.1f}",
        f"{group.mean(lambda row: row.wasted / 60).value:.1f} m",
        f"{group.mean(lambda row: row.continued).value:.1f}",
    ]


_TABLE_2 = ("hosts to begin with", "", "hosts", "time (h)", "speedup", "payment (h)")


def _table_2(rows: Sequence[Row]) -> list[list[str]]:
    found = groups(rows, "long")
    serial = found[0].mean(lambda row: row.work / _HOUR).shown(0)
    # The least time is that of the longest task, which is that of one host per task.
    least = found[0].mean(lambda row: row.wall / _HOUR).shown(2)
    fastest = found[0].mean(lambda row: row.speedup).shown()
    lines = [
        ["serial", "paper", *_printed(paper.SERIAL)],
        ["", "ours", "1", serial, "1", serial],
        ["optimal", "paper", *_printed(paper.OPTIMAL)],
        ["", "ours", fastest, least, fastest, serial],
    ]
    for initial, printed in paper.TABLE_2.items():
        first = f"{initial} (one per task)" if initial == max(paper.TABLE_2) else str(initial)
        lines.append([first, "paper", *_printed(printed)])
        here = [each for each in found if each.first.initial == initial]
        lines += [["", each.first.preset, *_long_run(each)] for each in here]
    return lines


def _printed(line: paper.Long) -> list[str]:
    return [f"{mean:g} ± {deviation:g}" for mean, deviation in msgspec.structs.astuple(line)]


def _long_run(group: Group) -> list[str]:
    return [
        group.mean(lambda row: row.hosts).shown(),
        group.mean(lambda row: row.wall / _HOUR).shown(2),
        group.mean(lambda row: row.speedup).shown(),
        group.mean(lambda row: row.units).shown(),
    ]
