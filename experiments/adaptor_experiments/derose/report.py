"""Exhibits of the experiment for its reader: tables, figures, a page and files for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from adaptor.units import counted
from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.claims import VERDICTS, Verdict
from adaptor_experiments.derose import claims
from adaptor_experiments.derose.comparison import Comparison, compare, on_all
from adaptor_experiments.derose.design import HEURISTICS, PARTS, Settings
from adaptor_experiments.derose.figures import draw_comparison, draw_figures
from adaptor_experiments.derose.goals import REFERENCES, goals
from adaptor_experiments.derose.own_trace import traces_named
from adaptor_experiments.derose.sample import Outcome, Piece, first_guess, jobs_of, pieces, run_piece
from adaptor_experiments.derose.tables import Paper, compared_tables, table_1, table_2, table_3
from adaptor_experiments.experiment import Experiment, Plan
from adaptor_experiments.figures import exhibits
from adaptor_experiments.tables import Runs, texts
from adaptor_simulation.files import write_whole


def report_of(
    outcomes: Runs[Outcome], settings: Settings, folder: Path, ran: Sequence[Piece]
) -> exhibits.Report:
    """The page; `comparison.json` is written for programs. `ran`: the pieces.

    Raises:
        ReplayError: something cannot be written.
    """
    workloads = {piece.workload: piece for piece in ran}
    comparisons = [
        compare(workload, outcomes.where(trace=workload.key), settings.seed) for workload in workloads
    ]
    papers = comparisons if {*HEURISTICS} <= {*settings.heuristics} else []
    paper, page = Paper(settings), texts("derose")
    told = sentences(comparisons)
    figures = folder / "figures"
    cases = {settings.case(found.workload): found for found in papers if paper.same_rules}
    on_claims, verdicts = claims.judged(cases, paper.whole)
    has_number = any(paper.number(workload, "speedup") for workload in workloads)
    _write_comparison(comparisons, told, settings, folder)
    return page.report(
        (*told, *_guesses(settings), *_on_claims(verdicts)),
        [*draw_comparison(comparisons, judged(comparisons), figures), *draw_figures(papers, figures)],
        [
            *compared_tables(comparisons),
            *([on_claims] if verdicts else []),
            table_1({workload: jobs_of(piece) for workload, piece in workloads.items()}, settings),
            table_2(settings),
            *([table_3(papers, settings)] if papers else []),
        ],
        settings=settings,
        whole=Settings(stretch=settings.stretch) if has_number else None,
        remarks=any(paper.speedup(found.workload) for found in papers),
        samples=min(found.samples for found in comparisons),
        heading=page.say(
            "papers" if {*settings.heuristics} == {*HEURISTICS} else "others",
            heuristics=", ".join(settings.heuristics),
        ),
        kinds=len(settings.job_types),
        limits=", ".join(map(str, settings.max_pending)),
        guesses=_listed_guesses(settings),
    )


def _listed_guesses(settings: Settings) -> str:
    return ", ".join(f"{first_guess(settings, name):,.0f} s by {name}" for name in settings.heuristics)


def _guesses(settings: Settings) -> list[str]:
    """A remark on heuristics that do not begin with the same guess, which is part of what they gain."""
    if len({first_guess(settings, name) for name in settings.heuristics}) < 2:
        return []
    return [texts("derose").say("guesses", guesses=_listed_guesses(settings))]


def judged(comparisons: Sequence[Comparison]) -> str:
    """The heuristic of which the page speaks first: the last that is none of the paper's, else adaptive."""
    names = list(comparisons[0].profiles)
    others = [name for name in names if name not in REFERENCES]
    return others[-1] if others else ("adaptive" if "adaptive" in names else names[-1])


def sentences(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Sentences on the speed of the judged heuristic, on all traces together, then on each."""
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


def _on_claims(verdicts: Mapping[str, Verdict]) -> list[str]:
    if not verdicts:
        return []
    keys = {
        verdict: ", ".join(key for key, each in verdicts.items() if each == verdict) or "none"
        for verdict in VERDICTS
    }
    return [texts("derose").say("claims", count=len(claims.CLAIMS), judged=len(verdicts), **keys)]


def _write_comparison(
    comparisons: Sequence[Comparison], found: Sequence[str], settings: Settings, folder: Path
) -> None:
    """Write `comparison.json`. An interval that is not known is open above: its `high` is null."""
    content = {
        "found": found,
        "settings": settings,
        "traces": [
            {
                "trace": on_trace.workload.key,
                "title": on_trace.workload.title,
                "processors": on_trace.workload.processors,
                "submission_times": on_trace.samples,
                "heuristics": list(on_trace.profiles.values()),
                "ratios": on_trace.ratios,
                "cells": on_trace.cells,
            }
            for on_trace in comparisons
        ],
        "goals": [
            goal
            for name in comparisons[0].profiles
            if name not in REFERENCES
            for goal in goals(comparisons, name)
        ],
    }
    text = msgspec.json.format(msgspec.json.encode(content), indent=1)
    write_whole(folder / "comparison.json", text + b"\n")


def plan(
    names: Sequence[str],
    samples: int = 100,
    cells: str = "paper",
    processors: int | None = None,
    traces: Path | None = None,
    **part: Any,
) -> Plan[Piece, Outcome, Settings]:
    """Of that number of submission times on each of the traces of these names (see `traces_named`)."""
    settings = Settings(**{**PARTS[cells], **part})
    wanted = pieces(*traces_named(names, processors, traces), settings, samples)
    return Plan(settings, wanted, partial(report_of, ran=wanted))


EXPERIMENT = Experiment(row=Outcome, run=run_piece, plan=plan, printed=("goals", "table-3"))
