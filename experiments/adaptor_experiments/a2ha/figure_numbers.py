"""The numbers that the papers' figures and texts have, beside ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from adaptor_experiments.a2ha import paper, reasons
from adaptor_experiments.a2ha.bags import IMAGE, KINDS, NORMAL, TESTING, WHOLE_HOUR, fixed
from adaptor_experiments.a2ha.design import Row, Settings
from adaptor_experiments.a2ha.growth import predicted
from adaptor_experiments.a2ha.known_hosts import FIVE_MINUTES, charged_units, speedup
from adaptor_experiments.a2ha.lines import Line, said
from adaptor_experiments.a2ha.reasons import Reason
from adaptor_experiments.a2ha.summary import groups, published

_MINUTE = 60.0
_CLOSE = 0.25


def of_2011(rows: Sequence[Row], settings: Settings) -> list[Line]:
    return [
        *_predictions(settings),
        *_optima(rows),
        _excess(rows, "grid-2011", IMAGE.key, "§4.1, Fig. 9", reasons.SUITABLE),
        _excess(rows, "grid-2011", TESTING.key, "§4.1, Fig. 11", reasons.SUITABLE),
        _speedups(rows, 2011, "§4.2, Fig. 12"),
        _efficiency(rows),
        _twice(rows, "aggressive", "§4.2, Fig. 12"),
        said("§4.2, Fig. 12", "variations", "46 to 61 %", "-", reasons.NOT_SAID),
    ]


def _predictions(settings: Settings) -> list[Line]:
    low, middle, high = predicted(settings)
    near = (high[24] - low[24]) / 2 / middle[-1]
    ratio = 1 - 0.6 * 0.5**10
    return [
        said(
            "Fig. 4b",
            "hosts predicted after the first task",
            "23",
            f"{middle[0]:.0f} ({low[0]:.0f} to {high[0]:.0f})",
            reasons.ONE_ORDER,
        ),
        said("Fig. 4b", "hosts predicted in the end", "16", f"{math.ceil(middle[-1])}", reasons.FINAL),
        said(
            "Fig. 4", "tasks after which the mean is near", "25", f"25: within {near:.0%} in 90 % of orders"
        ),
        said("Fig. 6b", "hosts of 23, by 0.4", "9", f"{math.ceil(23 * 0.4)}", reasons.ROUNDED_DOWN),
        said("Fig. 6b", "creationRatio after 10 tasks", "1", f"{ratio:.3f} from 0.4 by 0.5"),
    ]


def _optima(rows: Sequence[Row]) -> list[Line]:
    found = groups(rows, "grid-2011")
    return [
        said(
            "§4.1",
            f"{kind.title}: optimal hosts",
            str(kind.optimal),
            str(ours),
            reasons.AGREES if ours == kind.optimal else reasons.OPTIMUM,
        )
        for kind in (IMAGE, NORMAL, TESTING)
        for ours in [next(each.first.optimal for each in found if each.first.bag == kind.key)]
    ]


def _excess(rows: Sequence[Row], experiment: str, bag: str, place: str, reason: Reason) -> Line:
    found = [each for each in groups(rows, experiment) if each.first.bag == bag]
    excesses = [each.excess for each in found]
    middle = next(each for each in found if (each.first.creation, each.first.increase) == (0.5, 0.5))
    ours = f"{middle.excess:.0%} ({min(excesses):.0%} to {max(excesses):.0%})"
    what = f"{KINDS[bag].title}: hosts above the optimum"
    return said(place, what, paper.EXCESS[experiment, bag], ours, reason)


_PRESETS = {
    2011: ("conservative", "aggressive"),
    2008: ("conservative-2008", "aggressive-2008"),
}


def _speedups(rows: Sequence[Row], year: int, place: str) -> Line:
    """The image rendering never gets along with so few hosts."""
    found = [
        row.speedup
        for preset in _PRESETS[year]
        for row in published(rows, NORMAL.key, preset).rows
        if row.hosts == paper.FEW_HOSTS
    ]
    low, high = paper.FEW_SPEEDUPS[year]
    holds = bool(found) and low < float(np.mean(found)) < high
    ours = f"{min(found):.1f} to {max(found):.1f}" if found else "no such run"
    what = f"speedup of {paper.FEW_HOSTS} hosts"
    return said(place, what, f"{low} to {high}", ours, _if(holds, reasons.FIRST_TASKS))


def _if(agrees: bool, reason: Reason) -> Reason:
    return reasons.AGREES if agrees else reason


def _efficiency(rows: Sequence[Row]) -> Line:
    """Speedup over hosts, of all runs of Fig. 12."""
    least = min(
        row.speedup / row.hosts
        for bag in (IMAGE.key, NORMAL.key)
        for preset in _PRESETS[2011]
        for row in published(rows, bag, preset).rows
    )
    reason = _if(least > 0.5, reasons.FIRST_TASKS)
    return said("§4.2, Fig. 12", "efficiency", "> 50 %", f"{least:.0%} at the least", reason)


def _twice(rows: Sequence[Row], preset: str, place: str) -> Line:
    most = max(row.hosts / row.optimal for row in published(rows, IMAGE.key, preset).rows)
    reason = _if(abs(most - 2) < _CLOSE, reasons.FIRST_TASKS)
    return said(place, "aggressive: most hosts over the optimum", "close to 2", f"{most:.1f}", reason)


def of_2008(rows: Sequence[Row]) -> list[Line]:
    unit = WHOLE_HOUR.unit
    most = FIVE_MINUTES.count
    best = math.ceil(FIVE_MINUTES.count * FIVE_MINUTES.runtime / unit)
    image = fixed(IMAGE.key)
    return [
        said(
            "2008, Fig. 1",
            "300 tasks of 5 minutes on 300 hosts: hours charged",
            "300",
            str(charged_units(FIVE_MINUTES, most, unit)),
        ),
        said(
            "2008, Fig. 1",
            "the least hours charged",
            "25",
            str(min(charged_units(FIVE_MINUTES, hosts, unit) for hosts in range(1, most + 1))),
        ),
        said(
            "2008, Fig. 1",
            "for these: hosts and speedup at the most",
            "25 and 25",
            f"{best} and {speedup(FIVE_MINUTES, best):g}",
        ),
        said(
            "2008, Fig. 2",
            "amplitude of the image's runtimes (minutes)",
            "about 9",
            f"{(image.max() - image.min()) / _MINUTE:g}",
            reasons.AS_MADE,
        ),
        _excess(rows, "grid-2008", IMAGE.key, "2008, Fig. 5", reasons.PLUS_ONE),
        _excess(rows, "grid-2008", NORMAL.key, "2008, Fig. 6", reasons.PLUS_ONE),
        _speedups(rows, 2008, "2008, Fig. 7"),
        _twice(rows, "aggressive-2008", "2008, Fig. 7"),
        *_same_least(rows),
    ]


def _same_least(rows: Sequence[Row]) -> list[Line]:
    """Both presets have the same minimum number of hosts."""
    lines = []
    for year in (2008, 2011):
        least = [
            min(row.hosts for row in published(rows, IMAGE.key, preset).rows) for preset in _PRESETS[year]
        ]
        place = "2008, Fig. 7" if year == 2008 else "§4.2, Fig. 12"
        reason = _if(least[0] == least[1], reasons.FIRST_TASKS)
        ours = " and ".join(map(str, least))
        lines.append(said(place, "least hosts of both presets", "the same", ours, reason))
    return lines
