"""The tables beside the slides' evaluation, and where they agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.bats.campaign import Run
from adaptor_experiments.bats.design import BUDGETS, KINDS, REPLANNINGS, WAYS, Replanning

TITLES = {
    "none": "no tail phase",
    "random": "random replicas",
    "stochastic": "slides: stochastic",
    "daemon": "daemon",
    "perfect": "perfect knowledge",
    "migration": "stochastic + migration",
}
_COUNTED = ("replicas", "won", "migrations")
_HEADINGS = ("bags", "budget", *(TITLES[way] for way in WAYS))


_TIME = (
    "With the fastest budget the slides' replicas gain half of what perfect knowledge gains, and four fifths"
    " where runtimes have no heavy tail. The daemon takes a late task to be late by its node, and gains less"
    " where tasks are long by themselves, as all are here; where they are long by their machine it gains more"
    " (tests/experiments/bats/test_reasons.py).",
    "Random replicas gain a third of it or less: nine of ten are in vain. Times spread no more with them, as"
    " they change little.",
    "Migration ends no bag sooner than replicas alone, and with heavy tails its runs differ most. It is not"
    " only what it kills: where a moved task loses nothing, it gains with one kind of bag and budget only"
    " (table of findings).",
    "The slides expect a task to end by mean and variance. Ours looks at a bad case among the finished ones"
    " that took longer, as the bag ends with its last task and paid idle time is free.",
    "Only a faster machine that is idle and paid can help. With the minimal budget few are, so all ways are"
    " within 2 %. The slides draw their gains as bars, for machines that they do not name.",
)
_PLAN = (
    "The slides let time flow; the menu here counts the end of the last tasks, and normal bags end when it"
    " says.",
    "A sample of 30 tells the mean of the other bags, whose runtimes vary as much as they are long, to a"
    " third only (90 %).",
    "Runs in which the user would have been called are left out; see the last table.",
)
_BUDGET = (
    "Replicas never cost a unit that is not paid: with them no more runs are over the budget than without.",
    "What is over is so because the last tasks ran into another unit, which is paid rather than losing them."
    " The ledger of the adaptor reserves in full before it buys and does not allow that.",
)
_REPLANNED = (
    "The daemon keeps to a plan that misses its time or its budget by less than 5 %, and takes another for"
    " the sake of time only if it is 5 % sooner. The slides replan at any expected violation of the budget.",
    "Both look every five minutes, as in the slides; the daemon itself looks every ten seconds.",
)
_SAMPLED = (
    "“This might be costly and/or time consuming”: seven tasks run on both kinds of machines, and begun hours"
    " are charged whole. The slides do not say how many machines a sample is to have.",
)
_VAIN = ("In vain: another attempt of the task ended before the replica, or the paid time did.",)
_ASKED = (
    "“If both budget and makespan violations expected, call the user”: here the bag goes on with what it"
    " has, for the sake of the comparison. The adaptor pauses it.",
)


def tables(runs: Sequence[Run]) -> list[Exhibit]:
    return [
        _exhibit("time", "Time, per cent of that without a tail phase", runs, _relative, _TIME),
        _exhibit(
            "planned",
            "Time, per cent of what the menu promised: median (90 % quantile)",
            runs,
            _planned,
            _PLAN,
        ),
        _exhibit("over", "Runs that cost more than the budget", runs, _over, _BUDGET),
        _once(
            Exhibit(
                name="sampled",
                title="What the sample costs, which counts towards the budget",
                headings=("bags", "budget", "credits", "of the budget"),
                rows=[],
                remarks=_SAMPLED,
            ),
            runs,
            _sampled,
        ),
        _replanned(runs),
        _exhibit("copies", "Replicas in a run, and tasks that were moved", runs, _copies, _VAIN),
        _once(
            Exhibit(
                name="asked",
                title="Runs in which a re-evaluation would have called the user: the budget is too small",
                headings=("bags", "budget", "runs"),
                rows=[],
                remarks=_ASKED,
            ),
            runs,
            _asked,
        ),
    ]


def conclusion(runs: Sequence[Run]) -> tuple[str, ...]:
    """In sentences: what each way gains, by kind of bag, and what it costs."""
    return (*(_gains(runs, budget) for budget in BUDGETS), _costs(runs))


def _gains(runs: Sequence[Run], budget: str) -> str:
    def gain(way: str) -> str:
        by_kind = [100 - np.mean([run.relative for run in of(runs, kind, budget, way)]) for kind in KINDS]
        return ", ".join(f"{each:.1f} % ({kind})" for each, kind in zip(by_kind, KINDS, strict=True))

    return (
        f"{budget.capitalize()} budget: replicas as the daemon makes them end a bag sooner by"
        f" {gain('daemon')}; as in the slides, by {gain('stochastic')}; with perfect knowledge it would be"
        f" {gain('perfect')}."
    )


def _costs(runs: Sequence[Run]) -> str:
    daemon, none = (
        sum(
            run.over and not run.asked
            for kind in KINDS
            for budget in BUDGETS
            for run in of(runs, kind, budget, way)
        )
        for way in ("daemon", "none")
    )
    return f"Runs over the budget: {daemon} with the daemon's replicas, {none} without any."


def _relative(runs: Sequence[Run]) -> str:
    values = [run.relative for run in runs]
    return f"{np.mean(values):.1f} ± {np.std(values):.1f} %"


def _planned(runs: Sequence[Run]) -> str:
    values = [100 * run.seconds / run.planned for run in runs if not run.asked]
    if not values:
        return "-"
    return f"{np.median(values):.0f} % ({np.quantile(values, 0.9):.0f} %)"


def _over(runs: Sequence[Run]) -> str:
    through = [run for run in runs if not run.asked]
    if not through:
        return "-"
    over = [100 * (run.spent / run.allowed - 1) for run in through if run.over]
    return f"{len(over) / len(through):.0%}" + (f", by {np.mean(over):.1f} %" if over else "")


def _sampled(runs: Sequence[Run]) -> list[str]:
    share = np.mean([run.sampled / run.allowed for run in runs])
    return [f"{np.mean([run.sampled for run in runs]):.1f}", f"{100 * share:.1f} %"]


def _copies(runs: Sequence[Run]) -> str:
    replicas, won, moved = (np.mean([getattr(run, each) for run in runs]) for each in _COUNTED)
    text = f"{replicas:.1f}" + (f" ({1 - won / replicas:.0%} in vain)" if replicas else "")
    return text + (f", {moved:.1f} moved" if moved else "")


def _asked(runs: Sequence[Run]) -> list[str]:
    return [f"{np.mean([run.asked for run in runs]):.0%}"]


def _replanned(runs: Sequence[Run]) -> Exhibit:
    """How the two rules of replanning differ, without a tail phase."""
    rows = []
    for kind in KINDS:
        for budget in BUDGETS:
            for rule in REPLANNINGS:
                some = of(runs, kind, budget, "none", rule)
                rows.append([kind, budget, rule, _planned(some), _over(some), *_asked(some)])
    return Exhibit(
        name="replanning",
        title="Replanning as the daemon does it, and as the slides do; without a tail phase",
        headings=("bags", "budget", "rule", "time, of the promised", "over the budget", "user asked"),
        rows=rows,
        remarks=_REPLANNED,
    )


def _once(empty: Exhibit, runs: Sequence[Run], cells: Callable[[Sequence[Run]], list[str]]) -> Exhibit:
    """What does not depend on how a bag ends."""
    rows = [[kind, budget, *cells(of(runs, kind, budget, "none"))] for kind in KINDS for budget in BUDGETS]
    return msgspec.structs.replace(empty, rows=rows)


def _exhibit(
    name: str, title: str, runs: Sequence[Run], cell: Callable[[Sequence[Run]], str], remarks: tuple[str, ...]
) -> Exhibit:
    rows = [
        [kind, budget, *(cell(of(runs, kind, budget, way)) for way in WAYS)]
        for kind in KINDS
        for budget in BUDGETS
    ]
    return Exhibit(name=name, title=title, headings=_HEADINGS, rows=rows, remarks=remarks)


def of(runs: Sequence[Run], kind: str, budget: str, way: str, replanning: Replanning = "daemon") -> list[Run]:
    wanted = (kind, budget, way, replanning)
    return [run for run in runs if (run.kind, run.budget, run.way, run.replanning) == wanted]
