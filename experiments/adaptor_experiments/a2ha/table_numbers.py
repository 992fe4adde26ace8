"""The numbers of Tables 1 and 2 of 2011, beside ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from adaptor_experiments.a2ha import paper, reasons
from adaptor_experiments.a2ha.bags import KINDS
from adaptor_experiments.a2ha.design import Row
from adaptor_experiments.a2ha.lines import Line, is_near, measured, said
from adaptor_experiments.a2ha.paper_presets import AS_THE_TABLE
from adaptor_experiments.a2ha.summary import Group, Mean, groups, published

_HOUR, _MINUTE = 3600.0, 60.0

_ENDS: tuple[tuple[str, Callable[[Row], float]], ...] = (
    ("charged hours", lambda row: row.units),
    ("interrupted tasks", lambda row: row.cut),
    ("wasted minutes", lambda row: row.wasted / _MINUTE),
    ("continued hosts", lambda row: row.continued),
)
_REASONS_1 = {
    "charged hours": reasons.HEAVY_FIRST,
    "interrupted tasks": reasons.LOW_RATIOS,
    "wasted minutes": reasons.WASTED,
    "continued hosts": reasons.LOW_RATIOS,
}


def of_table_1(rows: Sequence[Row]) -> list[Line]:
    lines = []
    for bag, numbers in paper.TABLE_1.items():
        group = published(rows, bag, "conservative")
        for number, (what, of) in zip(numbers, _ENDS, strict=True):
            name = f"{KINDS[bag].title}: {what}"
            lines.append(measured("Table 1", name, number, group.mean(of), _REASONS_1[what]))
    return lines


_COLUMNS: tuple[tuple[str, Callable[[Row], float]], ...] = (
    ("hosts", lambda row: row.hosts),
    ("time (h)", lambda row: row.wall / _HOUR),
    ("speedup", lambda row: row.speedup),
    ("payment (h)", lambda row: row.units),
)


def of_table_2(rows: Sequence[Row]) -> list[Line]:
    found = {
        each.first.initial: each for each in groups(rows, "long") if each.first.preset == AS_THE_TABLE.name
    }
    lines = _without_estimator(found[max(found)])
    for first, printed in paper.TABLE_2.items():
        numbers = msgspec.structs.astuple(printed)
        for (what, of), (mean, deviation) in zip(_COLUMNS, numbers, strict=True):
            place = f"Table 2, {'one host per task' if first == max(found) else f'{first} first'}"
            ours = found[first].mean(of)
            near = is_near(ours, mean)
            reason = _REASONS_2.get((first, what), reasons.AGREES if near else reasons.FOUND_OUT_LATE)
            lines.append(said(place, what, f"{mean:g} ± {deviation:g}", ours.shown(2), reason))
    return lines


_REASONS_2 = {
    (256, "payment (h)"): reasons.NO_STARTUP,
    (100, "hosts"): reasons.HALF_OF_THE_REST,
    (50, "hosts"): reasons.HALF_OF_THE_REST,
}


def _without_estimator(each_its_own: Group) -> list[Line]:
    """Serial and optimal, by the runs with a host for each task."""
    serial = each_its_own.mean(lambda row: row.work / _HOUR)
    least = each_its_own.mean(lambda row: row.wall / _HOUR)
    fastest = each_its_own.mean(lambda row: row.speedup)
    one = Mean(1, 0)
    return [
        said(f"Table 2, {name}", what, f"{mean:g} ± {deviation:g}", ours.shown(2))
        for name, printed, ours_of in (
            ("serial", paper.SERIAL, (one, serial, one, serial)),
            ("optimal", paper.OPTIMAL, (fastest, least, fastest, serial)),
        )
        for (what, _), (mean, deviation), ours in zip(
            _COLUMNS, msgspec.structs.astuple(printed), ours_of, strict=True
        )
    ]
