"""The tables of the experiment: heuristics compared, the goals, and the paper's tables next to ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from adaptor.units import counted
from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.derose.comparison import BIGGEST, CLEARLY_SLOWER, Comparison, Profile, Ratio
from adaptor_experiments.derose.design import CELLS, Settings, Workload
from adaptor_experiments.derose.goals import REFERENCES, goals
from adaptor_experiments.derose.sample import AFTERWARDS
from adaptor_experiments.figures.exhibits import Exhibit
from adaptor_experiments.tables import Number, listed, texts
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
