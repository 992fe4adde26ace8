"""What an experiment leaves for its reader: tables, figures, a page and files for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from adaptor.figures import exhibits
from adaptor.figures.table_file import columns_of, write_table
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.files import write_whole
from adaptor.units import counted
from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.derose.campaign import Piece, jobs_of
from adaptor_experiments.derose.comparison import MEANS, Comparison, Kind, compare, on_all
from adaptor_experiments.derose.design import HEURISTICS, Settings
from adaptor_experiments.derose.figures import draw_comparison, draw_figures
from adaptor_experiments.derose.goals import REFERENCES, goals
from adaptor_experiments.derose.sample import Outcome
from adaptor_experiments.derose.tables import AdaptiveOver, compared_tables, paper_tables, table_1, table_2
from adaptor_experiments.resumable import Store
from adaptor_experiments.tables import Runs, texts


def write_report(wanted: Sequence[Piece], store: Store[Outcome], settings: Settings) -> exhibits.Report:
    """Write the results and their comparison, a CSV for each table, the figures and `report.html`.

    Raises:
        ReplayError: nothing is finished, or something cannot be read or written.
    """
    finished = [piece for piece in wanted if store.has(piece)]
    if not finished:
        raise ReplayError(f"{store.folder}: no sample is finished, there is nothing to report")
    outcomes = Runs(store.read(finished))
    write_table(columns_of(outcomes), store.folder / "results")
    pieces = {piece.workload: piece for piece in finished}
    comparisons = [
        compare(workload, outcomes.where(trace=workload.key), settings.seed) for workload in pieces
    ]
    papers = comparisons if {*HEURISTICS} <= {*settings.heuristics} else []
    told = sentences(comparisons)
    figures = store.folder / "figures"
    page = texts("derose")
    report = page.report(
        (*told, *conclusion(papers)),
        [*draw_comparison(comparisons, judged(comparisons), figures), *draw_figures(papers, figures)],
        [
            *compared_tables(comparisons),
            table_1({workload: jobs_of(piece) for workload, piece in pieces.items()}),
            table_2(settings),
            *(paper_tables(papers) if papers else []),
        ],
        heading=page.say(
            "papers" if {*settings.heuristics} == {*HEURISTICS} else "others",
            heuristics=", ".join(settings.heuristics),
        ),
        kinds=len(settings.job_types),
        limits=", ".join(map(str, settings.max_pending)),
        static=page.say("whole machine") if settings.static_maximum else "",
        stretch=page.say("stretched", factor=f"{settings.stretch:g}") if settings.stretch != 1 else "",
        settings=settings,
    )
    if not papers:
        report = msgspec.structs.replace(report, remarks=())
    _write_comparison(comparisons, told, settings, store.folder)
    if papers:
        write_table(_cells(papers), store.folder / "cells")
    exhibits.write_report(report, store.folder)
    return report


def judged(comparisons: Sequence[Comparison]) -> str:
    """The heuristic of which the page speaks first: the last that is none of the paper's, else adaptive."""
    names = list(comparisons[0].profiles)
    others = [name for name in names if name not in REFERENCES]
    return others[-1] if others else ("adaptive" if "adaptive" in names else names[-1])


def sentences(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """How the judged heuristic finishes bags, on all traces together, then on each."""
    subject = judged(comparisons)
    cells = counted(len(comparisons[0].kinds), "cell")
    traces = "" if len(comparisons) == 1 else f" on each of {len(comparisons)} traces"
    told = [
        f"{_sooner(subject, over, found, f'geometric mean of {cells}{traces}')}."
        for over in dict.fromkeys((*REFERENCES, *comparisons[0].profiles))
        if (found := on_all(comparisons, subject, over)) is not None
    ]
    judgements = goals(comparisons, subject) if subject not in REFERENCES else []
    if judgements:
        met = sum(goal.met for goal in judgements)
        told.append(f"{subject} meets {met} of its {counted(len(judgements), 'goal')}.")
    return (*told, *filter(None, (_on_one(found, subject) for found in comparisons)))


def _on_one(found: Comparison, subject: str) -> str:
    ratios = [ratio for over in REFERENCES if (ratio := found.ratio(subject, over)) is not None]
    told = "; ".join(
        _sooner(name, ratio.over, ratio.geometric, "")
        + f", the worst cell {ratio.worst} ({ratio.worst_kind})"
        for name, ratio in zip((subject, "it"), ratios, strict=False)
    )
    return f"{found.workload.title}: {told}." if told else ""


def _sooner(subject: str, over: str, found: Interval, of: str) -> str:
    """`completion finishes bags 1.7 times sooner than adaptive (geometric mean of 54 cells, 1.5 to 1.9)`."""
    value, low, high = found.value, found.low, found.high
    how = "finishes bags {:.2f} times sooner than"
    if value < 1:
        value, low, high = 1 / value, 1 / high, 1 / low if found.known else high
        how = "takes {:.2f} times as long for a bag as"
    aside = ", ".join(filter(None, (of, f"{low:.2f} to {high:.2f}" if found.known else "")))
    return f"{subject} {how.format(value)} {over}{f' ({aside})' if aside else ''}"


def conclusion(comparisons: Sequence[Comparison]) -> list[str]:
    """Adaptive against static, as the paper looks at them."""
    page = texts("derose")
    every = [AdaptiveOver(found) for found in comparisons]
    told = [
        page.say(
            "on one trace",
            title=found.workload.title,
            ratio=found.ratio,
            faster=f"{found.faster:.0%}",
            paper="" if found.paper == "-" else f" (the paper: {found.paper})",
            times=page.say("times" if found.samples > 1 else "one time", samples=found.samples),
        )
        for found in every
    ]
    lost = [(found.workload.title, found.few_long) for found in every if found.few_long]
    cells = ", ".join(
        f"{sum(value < 1 for value in speedups)} of {len(speedups)} cells on {title}"
        for title, speedups in lost
    )
    return [*told, *([page.say("losses", cells=cells)] if lost else [])]


def _write_comparison(
    comparisons: Sequence[Comparison], found: Sequence[str], settings: Settings, folder: Path
) -> None:
    """Write `comparison.json`, and `comparison.csv` with a line for each cell.

    An interval that is not known is open above: its `high` is null, or inf in the CSV.
    """
    content = {
        "found": found,
        "settings": settings,
        "traces": [
            {
                "trace": on_trace.workload.key,
                "title": on_trace.workload.title,
                "processors": on_trace.workload.processors,
                "submission_times": on_trace.samples,
                "cells": len(on_trace.kinds),
                "heuristics": list(on_trace.profiles.values()),
                "ratios": on_trace.ratios,
            }
            for on_trace in comparisons
        ],
        "goals": [
            {
                "met": goal.met,
                **msgspec.to_builtins(goal),
                "verdicts": [
                    {"met": verdict.met, **msgspec.to_builtins(verdict)} for verdict in goal.verdicts
                ],
            }
            for name in comparisons[0].profiles
            if name not in REFERENCES
            for goal in goals(comparisons, name)
        ],
    }
    text = msgspec.json.format(msgspec.json.encode(content), indent=1)
    write_whole(folder / "comparison.json", text + b"\n")
    write_table(_columns(comparisons), folder / "comparison")


def _columns(comparisons: Sequence[Comparison]) -> dict[str, list[Any]]:
    cells = [(found, cell) for found in comparisons for cell in found.cells]
    columns: dict[str, list[Any]] = {"trace": [found.workload.key for found, _ in cells]}
    for field in Kind.__struct_fields__:
        columns[field] = [getattr(cell.kind, field) for _, cell in cells]
    columns["samples"] = [found.samples for found, _ in cells]
    columns["heuristic"] = [cell.heuristic for _, cell in cells]
    for field in MEANS:
        columns[field] = [cell.means[field] for _, cell in cells]
    for name in comparisons[0].profiles:
        for bound, ending in (("value", ""), ("low", "_low"), ("high", "_high")):
            columns[f"over_{name}{ending}"] = [
                getattr(cell.over[name], bound) if name in cell.over else "" for _, cell in cells
            ]
    return columns


def _cells(comparisons: Sequence[Comparison]) -> dict[str, list[Any]]:
    """Adaptive against static: a line for each cell."""
    columns = _columns(
        [
            msgspec.structs.replace(
                found, profiles={"static": found.profiles["static"]}, cells=found.of("adaptive")
            )
            for found in comparisons
        ]
    )
    static = [cell.means["turnaround"] for found in comparisons for cell in found.of("static")]
    return {
        **{name: columns[name] for name in ("trace", *Kind.__struct_fields__, "samples")},
        "static": static,
        "adaptive": columns["turnaround"],
        "bound": columns["bound"],
        "speedup": columns["over_static"],
        "low": columns["over_static_low"],
        "high": columns["over_static_high"],
    }
