"""What a reader learns first of heuristics that are compared: a sentence for each trace, and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adaptor.figures.exhibits import Exhibit
from adaptor.units import counted
from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.derose.comparison import BIGGEST, CLEARLY_SLOWER, Comparison, Profile, Ratio, on_all
from adaptor_experiments.derose.goals import REFERENCES, goals
from adaptor_experiments.derose.local_waits import AFTERWARDS

_Row = tuple[str, Callable[[Comparison, str], str]]


def judged(names: Sequence[str]) -> str:
    """The heuristic of which the page speaks first: the last that is none of the paper's, else adaptive."""
    others = [name for name in names if name not in REFERENCES]
    return others[-1] if others else ("adaptive" if "adaptive" in names else names[-1])


def sentences(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """How the heuristic of which it is finishes bags, on all traces together, then on each."""
    names = list(comparisons[0].profiles)
    subject = judged(names)
    told = []
    for over in dict.fromkeys((*REFERENCES, *names)):
        found = on_all(comparisons, subject, over)
        if found is not None:
            told.append(f"{_sooner(subject, over, found, _cells(comparisons))}.")
    judgements = goals(comparisons, subject) if subject not in REFERENCES else []
    if judgements:
        met = sum(goal.met for goal in judgements)
        told.append(f"{subject} meets {met} of its {counted(len(judgements), 'goal')}.")
    told += [sentence for each in comparisons if (sentence := _on_one(each, subject))]
    return tuple(told)


def _on_one(each: Comparison, subject: str) -> str:
    ratios = [ratio for over in REFERENCES if (ratio := each.ratio(subject, over)) is not None]
    told = "; ".join(
        _sooner(subject if not place else "it", ratio.over, ratio.geometric, "")
        + f", the worst cell {ratio.worst} ({ratio.worst_kind})"
        for place, ratio in enumerate(ratios)
    )
    return f"{each.workload.title}: {told}." if told else ""


def _sooner(subject: str, over: str, found: Interval, of: str) -> str:
    """`completion finishes bags 1.7 times sooner than adaptive (geometric mean of 54 cells, 1.5 to 1.9)`."""
    value, low, high = found.value, found.low, found.high
    how = "finishes bags {:.2f} times sooner than"
    if value < 1:
        value, low, high = 1 / value, 1 / high, 1 / low if found.known else high
        how = "takes {:.2f} times as long for a bag as"
    bounds = f"{low:.2f} to {high:.2f}" if found.known else ""
    aside = ", ".join(part for part in (of, bounds) if part)
    return f"{subject} {how.format(value)} {over}{f' ({aside})' if aside else ''}"


def _cells(comparisons: Sequence[Comparison]) -> str:
    cells = counted(len(comparisons[0].kinds), "cell")
    traces = "" if len(comparisons) == 1 else f" on each of {len(comparisons)} traces"
    return f"geometric mean of {cells}{traces}"


def compared_tables(comparisons: Sequence[Comparison]) -> list[Exhibit]:
    """The goals, where a heuristic is there that they are for; a table for each trace; all pairs."""
    names = list(comparisons[0].profiles)
    every = [_of_trace(each) for each in comparisons]
    candidates = [name for name in names if name not in REFERENCES]
    return [
        *(exhibit for name in candidates if (exhibit := _goals(comparisons, name)) is not None),
        *every,
        *([_pairs(comparisons)] if len(names) > 1 else []),
    ]


def _goals(comparisons: Sequence[Comparison], name: str) -> Exhibit | None:
    found = goals(comparisons, name)
    if not found:
        return None
    keys = [each.workload.key for each in comparisons]
    rows = []
    for goal in found:
        by_trace = {verdict.trace: str(verdict) for verdict in goal.verdicts}
        verdict = "met" if goal.met else "missed"
        rows.append([goal.text, verdict, *(by_trace.get(key, "-") for key in keys)])
    return Exhibit(
        name="goals" if len(comparisons[0].profiles) <= len(REFERENCES) + 1 else f"goals-{name}",
        title=f"The goals of {name}",
        headings=("goal", "on all traces", *(each.workload.title for each in comparisons)),
        rows=rows,
        remarks=(
            "The goals are stated for the 54 cells of --cells goals and at least 200 submission times; a goal"
            " is met where the figure itself is, its interval stands beside it.",
        ),
    )


def _of_trace(each: Comparison) -> Exhibit:
    names, cells = list(each.profiles), counted(len(each.kinds), "cell")
    return Exhibit(
        name=f"compared-{each.workload.key}",
        title=f"{each.workload.title}: {', '.join(names)}",
        headings=("figure", *names),
        rows=[[title, *(shown(each, name) for name in names)] for title, shown in _rows(each)],
        remarks=(
            f"{cells}, {counted(each.samples, 'submission time')}. A cell is a kind"
            " of grid job under one limit; its ratio is the other's mean turnaround over this heuristic's:"
            " above 1 this one is faster. In brackets: 95 % intervals, by a bootstrap over the submission"
            " times.",
            "Waste is the share of the processor time held in which no task ran that finished there. The"
            " added wait is net: hours that the local jobs wait longer in all (below 0: less), until"
            f" {AFTERWARDS // 86_400} days after the bag's end, for each processor-hour of its tasks. Waste"
            f" is the mean of the cells, the wait that of all bags of less than {BIGGEST:,} s of work.",
        ),
    )


def _rows(each: Comparison) -> list[_Row]:
    references = [name for name in REFERENCES if name in each.profiles]
    means = sorted({kind.mean for kind in each.kinds})
    rows: list[_Row] = []
    for over in references:
        rows.append((f"times sooner than {over}, geometric mean", _ratio(over, lambda it: str(it.geometric))))
        rows += [(f"  tasks of {mean:,} s", _by_mean(over, mean)) for mean in means]
        rows += [
            ("  arithmetic mean", _ratio(over, lambda it: str(it.arithmetic))),
            ("  worst cell", _ratio(over, lambda it: f"{it.worst} ({it.worst_kind})")),
            (f"  cells below {CLEARLY_SLOWER}", _ratio(over, lambda it: str(it.slower))),
        ]
    return [
        *rows,
        ("distance to the lower bound, geometric mean", _profile(lambda it: str(it.distance))),
        ("waste", _profile(lambda it: it.waste.percent)),
        ("added wait of local jobs, h per processor-hour", _profile(lambda it: str(it.local_wait))),
        ("requests for each bag", _profile(lambda it: f"{it.requests:.1f}")),
        ("  of them withdrawn", _profile(lambda it: f"{it.withdrawn:.1f}")),
        ("  changes of them in the queue", _profile(lambda it: f"{it.reshaped:.1f}")),
        ("planning steps for each bag", _profile(lambda it: f"{it.decisions:.0f}")),
        ("  processor time of each, ms", _profile(lambda it: f"{it.decision_time:.2f}")),
    ]


def _by_mean(over: str, mean: int) -> Callable[[Comparison, str], str]:
    return _ratio(over, lambda it: str(it.by_mean[mean]))


def _ratio(over: str, shown: Callable[[Ratio], str]) -> Callable[[Comparison, str], str]:
    def cell(each: Comparison, name: str) -> str:
        ratio = each.ratio(name, over)
        return "-" if ratio is None else shown(ratio)

    return cell


def _profile(shown: Callable[[Profile], str]) -> Callable[[Comparison, str], str]:
    return lambda each, name: shown(each.profiles[name])


def _pairs(comparisons: Sequence[Comparison]) -> Exhibit:
    names = list(comparisons[0].profiles)
    rows = [
        [each.workload.title, name, *(_geometric(each, name, other) for other in names)]
        for each in comparisons
        for name in names
    ]
    return Exhibit(
        name="pairs",
        title="How many times sooner each heuristic finishes a bag than each other one, geometric mean",
        headings=("workload", "heuristic", *(f"than {name}" for name in names)),
        rows=rows,
    )


def _geometric(each: Comparison, name: str, other: str) -> str:
    ratio = each.ratio(name, other)
    return "-" if ratio is None else str(ratio.geometric)
