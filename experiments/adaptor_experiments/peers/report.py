"""The tables and the page of the experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from adaptor.units import format_duration
from adaptor_experiments.bootstrap import Interval, drawn_means, weights
from adaptor_experiments.derose.own_trace import traces_named
from adaptor_experiments.experiment import Experiment, Plan
from adaptor_experiments.figures.exhibits import Report
from adaptor_experiments.peers.design import OURS, REFERENCE, WAYS, Piece, Settings, pieces
from adaptor_experiments.peers.sample import Outcome, run_piece
from adaptor_experiments.tables import Runs, texts

_OF_A_BAG = ("trace", "scheduler", "sample", "tasks", "mean", "shape")
_PARTS = ("scheduler", "tasks", "mean", "shape")


def report_of(rows: Runs[Outcome], settings: Settings, folder: Path) -> Report:  # noqa: ARG001
    page = texts("peers")
    samples = len(rows.by("sample"))
    parts = [(field, value) for field in _PARTS for value in rows.by(field)]
    names = [way.name for way in OURS if way.name in settings.ways]
    return page.report(
        [_said(name, rows) for name in names],
        [],
        [
            page.exhibit("ways", _ways(rows, parts), (*map(_shown, parts), *page.tables["rest"].headings)),
            page.exhibit("cells", _cells(rows, names), names),
        ],
        settings=settings,
        nodes=page.say("processors" if settings.node == 1 else "nodes", node=settings.node),
        start=page.say("costs" if settings.start else "free", start=settings.start),
        order=page.say(
            "by_share" if settings.fair_share else "by_submission",
            half_life=format_duration(settings.fair_share),
        ),
        depth=page.say(
            "bounded" if settings.backfill_per_user else "unbounded", per_user=settings.backfill_per_user
        ),
        samples=samples,
        traces=", ".join(rows.by("trace")),
    )


def ratios(rows: Runs[Outcome], name: str) -> dict[tuple[object, ...], list[float]]:
    """Turnarounds of a way over those of the reference, by trace, scheduler and sample; bags that one of the
    two cannot run are left out."""
    known = rows.by("way")
    reference = {_bag(row): row.turnaround for row in known[REFERENCE] if row.turnaround > 0}
    found: dict[tuple[object, ...], list[float]] = {}
    for row in known.get(name, ()):
        if row.turnaround > 0 and (other := reference.get(_bag(row))):
            found.setdefault(_bag(row)[:3], []).append(row.turnaround / other)
    return found


def _bag(row: Outcome) -> tuple[object, ...]:
    return tuple(getattr(row, field) for field in _OF_A_BAG)


def geometric(rows: Runs[Outcome], name: str) -> Interval | None:
    """The geometric mean of the ratios, with what chance leaves open; None: there are none."""
    logs = np.array([np.log(each).mean() for each in ratios(rows, name).values()])
    if not len(logs):
        return None
    found = drawn_means(logs, weights(len(logs), 1)).through(np.exp)
    return found.interval


def _ways(rows: Runs[Outcome], parts: list[tuple[str, object]]) -> Iterator[list[str]]:
    for name, runs in rows.by("way").items():
        ran = _ran(runs)
        if not ran:
            yield [name, *["-"] * (len(parts) + 2), f"{len(runs)} of {len(runs)}", *["-"] * 5]
            continue
        each = [_mean(rows.where(**{field: value}), name) for field, value in parts]
        worst = max(ratio for some in ratios(rows, name).values() for ratio in some)
        yield [
            name,
            str(geometric(rows, name)),
            *each,
            f"{worst:.2f}",
            f"{len(runs) - len(ran)} of {len(runs)}",
            _waste(ran),
            f"{ran.mean('jobs'):,.0f}",
            f"{ran.mean('added'):.2f}",
            f"{ran.geometric(lambda row: row.slower):.2f}",
            f"{ran.geometric(lambda row: row.slower_per_processor):.2f}",
        ]


def _cells(rows: Runs[Outcome], names: list[str]) -> Iterator[list[str]]:
    for (tasks, mean, shape), runs in rows.by("tasks", "mean", "shape").items():
        yield [f"{tasks:,}", f"{mean:,}", shape, *(_mean(runs, name) for name in names)]


def _mean(rows: Runs[Outcome], name: str) -> str:
    found = geometric(rows, name)
    return "-" if found is None else f"{found.value:.2f}"


def _shown(part: tuple[str, object]) -> str:
    field, value = part
    return f"{value:,} {'tasks' if field == 'tasks' else 's'}" if isinstance(value, int) else str(value)


def _said(name: str, rows: Runs[Outcome]) -> str:
    waste = _waste(_ran(rows.where(way=name)))
    return texts("peers").say("way", name=name, ratio=geometric(rows, name), waste=waste)


def _ran(runs: Runs[Outcome]) -> Runs[Outcome]:
    """Runs of bags that their way can run."""
    return Runs(row for row in runs if row.turnaround > 0)


def _waste(runs: Runs[Outcome]) -> str:
    """The part of what they held that ran no task."""
    return f"{1 - sum(row.work for row in runs) / sum(row.held for row in runs):.0%}"


def plan(
    names: Sequence[str],
    samples: int = 10,
    processors: int | None = None,
    traces: Path | None = None,
    ways: Sequence[str] = tuple(WAYS),
    **part: Any,
) -> Plan[Piece, Outcome, Settings]:
    """Of that number of submission times on each of the traces of these names (see `traces_named`)."""
    settings = Settings(ways=tuple(way for way in WAYS if way in (*ways, REFERENCE)), **part)
    return Plan(settings, pieces(*traces_named(names, processors, traces), settings, samples), report_of)


EXPERIMENT = Experiment(row=Outcome, run=run_piece, plan=plan)
