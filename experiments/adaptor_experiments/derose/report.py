"""The tables and the page of the experiment, and files for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adaptor.units import counted
from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.claims import VERDICTS, Verdict
from adaptor_experiments.derose import claims
from adaptor_experiments.derose.comparison import (
    BIGGEST,
    CLEARLY_SLOWER,
    REFERENCES,
    Comparison,
    Profile,
    Ratio,
    compare,
    goals,
    on_all,
)
from adaptor_experiments.derose.design import CELLS, HEURISTICS, PARTS, Settings, Workload, traces_named
from adaptor_experiments.derose.figures import draw_comparison, draw_figures
from adaptor_experiments.derose.sample import (
    AFTERWARDS,
    Outcome,
    Piece,
    first_guess,
    jobs_of,
    pieces,
    run_piece,
)
from adaptor_experiments.experiment import Experiment, Plan
from adaptor_experiments.figures import exhibits
from adaptor_experiments.figures.exhibits import Exhibit
from adaptor_experiments.tables import Number, Runs, listed, texts
from adaptor_simulation.files import write_whole
from adaptor_simulation.jobs import Jobs

_DAY = 86_400


def compared_tables(comparisons: Sequence[Comparison]) -> list[Exhibit]:
    """The goals, where a heuristic is there that they are for; a table for each trace."""
    names = list(comparisons[0].profiles)
    judged = [_goals(comparisons, name) for name in names if name not in REFERENCES]
    return [*(exhibit for exhibit in judged if exhibit.rows), *map(_of_trace, comparisons)]


def _goals(comparisons: Sequence[Comparison], heuristic: str) -> Exhibit:
    rows = []
    for goal in goals(comparisons, heuristic):
        by_trace = {verdict.trace: str(verdict) for verdict in goal.verdicts}
        verdicts = (by_trace.get(found.workload.key, "-") for found in comparisons)
        rows.append([goal.text, "met" if goal.met else "missed", *verdicts])
    alone = len(comparisons[0].profiles) <= len(REFERENCES) + 1
    titles = (found.workload.title for found in comparisons)
    name = "goals" if alone else f"goals-{heuristic}"
    return texts("derose").exhibit("goals", rows, titles, name=name, heuristic=heuristic)


def _of_trace(found: Comparison) -> Exhibit:
    names, means = list(found.profiles), sorted({kind.mean for kind in found.kinds})
    rows: list[list[str]] = []
    for over in (name for name in REFERENCES if name in names):
        ratios = [found.ratio(name, over) for name in names]
        of_ratio: dict[str, Callable[[Ratio], str]] = {
            f"times sooner than {over}, geometric mean": lambda ratio: str(ratio.geometric),
            **{
                f"  tasks of {mean:,} s": lambda ratio, mean=mean: str(ratio.by_mean[mean])  # type: ignore[misc]
                for mean in means
            },
            "  arithmetic mean": lambda ratio: str(ratio.arithmetic),
            "  worst cell": lambda ratio: f"{ratio.worst} ({ratio.worst_kind})",
            f"  cells below {CLEARLY_SLOWER}": lambda ratio: str(ratio.slower),
        }
        for title, shown in of_ratio.items():
            rows.append([title, *("-" if ratio is None else shown(ratio) for ratio in ratios)])
    of_profile: dict[str, Callable[[Profile], str]] = {
        "distance to the lower bound, geometric mean": lambda of: str(of.distance),
        "waste": lambda of: of.waste.percent,
        "added wait of local jobs, h per processor-hour": lambda of: str(of.local_wait),
        "bounded slowdown of local jobs, over that without the bag": lambda of: str(of.slowdown),
        "  per processor": lambda of: str(of.slowdown_per_processor),
        "requests for each bag": lambda of: f"{of.requests:.1f}",
        "  of them withdrawn": lambda of: f"{of.withdrawn:.1f}",
        "  changes of them in the queue": lambda of: f"{of.reshaped:.1f}",
        "planning steps for each bag": lambda of: f"{of.decisions:.0f}",
        "  processor time of each, ms": lambda of: f"{of.decision_time:.2f}",
    }
    rows += [[title, *map(of, found.profiles.values())] for title, of in of_profile.items()]
    return texts("derose").exhibit(
        "compared",
        rows,
        names,
        name=f"compared-{found.workload.key}",
        title=found.workload.title,
        names=", ".join(names),
        cells=counted(len(found.kinds), "cell"),
        times=counted(found.samples, "submission time"),
        days=AFTERWARDS // _DAY,
        biggest=f"{BIGGEST:,}",
    )


class Paper:
    """Printed figures of the paper of a run with these settings, for a trace at a load."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        at_the_load = Settings(stretch=settings.stretch)
        self.whole = not texts("derose").departures(settings, at_the_load)
        """Whether its means are of all kinds of grid job, under the paper's rules."""
        cells = {name: getattr(settings, name) for name in CELLS}
        same_cells = msgspec.structs.replace(at_the_load, **cells)
        self.same_rules = not texts("derose").departures(settings, same_cells)

    def number(self, workload: Workload, what: str) -> Number | None:
        return texts("derose").numbers.get(f"{self.settings.case(workload)} {what}")

    def printed(self, workload: Workload, what: str) -> str:
        number = self.number(workload, what)
        return "-" if number is None else number.paper

    def speedup(self, workload: Workload) -> Number | None:
        """Speedup of Table 3; None: the paper has no such run."""
        return self.number(workload, "speedup") if self.whole else None


def table_1(replayed: Mapping[Workload, Jobs], settings: Settings) -> Exhibit:
    """The workloads. `replayed`: the jobs as they come in this run, at whatever load."""
    paper = Paper(settings)
    rows = []
    for workload, jobs in replayed.items():
        number = paper.number(workload, "requests")
        printed = (paper.printed(workload, what) for what in ("requests", "load", "period"))
        ours = (
            f"{len(jobs):,}",
            f"{jobs.offered_load(workload.processors):.1%}",
            f"{(jobs.submit[-1] - jobs.submit[0]) / _DAY:,.0f}",
        )
        beside = (text for pair in zip(printed, ours, strict=True) for text in pair)
        reason = "not in the paper" if number is None else number.reason
        rows.append([workload.title, f"{workload.processors:,}", *beside, reason])
    return texts("derose").exhibit("table-1", rows)


def table_2(settings: Settings) -> Exhibit:
    """The grid jobs, and the rules for all of them."""
    page = texts("derose")
    rows = [
        [page.terms[field], listed(getattr(Settings(), field)), listed(getattr(settings, field)), reason]
        for field, reason in page.tables["table-2"].rows
    ]
    return page.exhibit("table-2", rows)


def table_3(comparisons: Sequence[Comparison], settings: Settings) -> Exhibit:
    """Table of adaptive against static."""
    rows = []
    for found in comparisons:
        ratio, number = found.ratio("adaptive", "static"), Paper(settings).speedup(found.workload)
        assert ratio is not None  # both were run
        faster = np.mean([cell.over["static"].value > 1 for cell in found.of("adaptive")])
        figures = [str(ratio.arithmetic), _error(ratio.arithmetic, found.samples), str(ratio.geometric)]
        counts = [f"{faster:.0%}", str(found.samples), _reason(number, ratio.arithmetic)]
        rows.append([found.workload.title, "-" if number is None else number.paper, *figures, *counts])
    return texts("derose").exhibit("table-3", rows)


def _error(mean: Interval, samples: int) -> str:
    """Half the interval in per cent, which falls by the root of the times; how many would make it 5 %."""
    if not mean.known:
        return "-"
    error = mean.relative_error
    return f"{error:.0%}" + (f" (5 %: {samples * (error / 0.05) ** 2:,.0f} times)" if error > 0.05 else "")


def _reason(number: Number | None, ours: Interval) -> str:
    if number is None:
        return texts("derose").say("no number")
    if ours.known and ours.holds(number.value):
        return texts("derose").say("agrees")
    return number.reason or "differs"


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
