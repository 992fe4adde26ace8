"""The tables, the figures and the page, with what De Rose et al. 2008 say of the two strategies (§3, §5).

The paper gives no figures for "acceptable" or "efficiently"; the bounds are ours, and the page names them. A
claim on transparent allocation is held against the paper's own rule (all-idle) and against ours
(transparent).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from adaptor.budget.accounting.tariffs import Tariff
from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.claims import VERDICTS, Bounds, Verdict, example, tally
from adaptor_experiments.derose.design import folder_of_traces
from adaptor_experiments.experiment import Experiment, Plan
from adaptor_experiments.figures.canvas import Drawing, Panels, ratio_scale
from adaptor_experiments.figures.exhibits import Exhibit, Report
from adaptor_experiments.tables import Mean, Runs, grouped_bars, texts, with_bars
from adaptor_experiments.transparent.cells import HOUR, Cell, Share, summarise
from adaptor_experiments.transparent.design import (
    DONATED,
    MACHINES,
    STRATEGIES,
    WATCHED,
    Donated,
    Outcome,
    Piece,
    Settings,
    pieces,
    prices,
    run_piece,
)

Figure = Callable[[Cell, Donated], Interval]


def _explicit(cell: Cell, rule: Donated) -> Interval:
    return cell.explicit[rule]


def _of_share(figure: Callable[[Share], float]) -> Figure:
    return lambda cell, rule: Interval.exactly(figure(cell.by[rule]))


def _not_heavy(cell: Cell) -> bool:
    return cell.level != "heavy"


def _long_or_heavy(cell: Cell) -> bool:
    return cell.mean == 10_000 or cell.level == "heavy"


def _every(_: Cell) -> bool:
    return True


_SOME = Bounds(low=1e-9)
_JUDGES: dict[str, tuple[Callable[[Cell], bool], Figure, Bounds]] = {
    "A": (
        lambda cell: cell.mean == 100 and cell.tasks >= 10_000 and _not_heavy(cell),
        _explicit,
        Bounds(low=1.0),
    ),
    "B": (lambda cell: cell.mean == 1000 and _not_heavy(cell), _explicit, Bounds(low=0.5)),
    "C": (_long_or_heavy, _explicit, Bounds(high=1.0)),
    "D": (lambda cell: cell.mean <= 1000 and _not_heavy(cell), _explicit, Bounds(low=0.5)),
    "E": (lambda cell: cell.mean == 10_000 and cell.level == "low", _explicit, Bounds(low=0.5)),
    "F": (_every, _of_share(lambda donated: donated.later), Bounds(high=_SOME.low)),
    "G": (_every, _of_share(lambda donated: donated.reclaims), _SOME),
    "H": (lambda cell: cell.mean <= 1000, _of_share(lambda donated: _lost([donated])), Bounds(high=0.2)),
    "I": (_long_or_heavy, _explicit, Bounds(high=0.5)),
    "J": (_not_heavy, _explicit, Bounds(0.5, 2.0)),
    "K": (_every, lambda cell, _: Interval.exactly(cell.by["adaptive"].delay), _SOME),
    "L": (_every, lambda cell, _: cell.mixed, Bounds(low=1 / 1.1)),
    "L-cost": (_every, lambda cell, _: cell.cheaper, Bounds(low=1.0)),
}
"""By the key of a claim, whose words are in `page.yaml`: the cells that it concerns, what is measured in one,
and the bounds of that."""


def verdicts(cell: Cell, rule: Donated) -> str:
    """Verdicts of a cell on the claims that concern it: `+A ?B −C` (confirms, open, contradicts)."""
    signs: dict[Verdict, str] = {"confirms": "+", "open": "?", "contradicts": "−"}
    return " ".join(
        f"{signs[bounds.judge(figure(cell, rule))]}{key}"
        for key, (concerns, figure, bounds) in _JUDGES.items()
        if concerns(cell)
    )


def tallied(claim: str, cells: Sequence[Cell], rule: Donated) -> dict[Verdict, list[Cell]]:
    """The cells that a claim concerns, by what they say of it."""
    concerns, figure, bounds = _JUDGES[claim]
    return tally(filter(concerns, cells), lambda cell: bounds.judge(figure(cell, rule)))


TITLES = {machine.key: machine.title for machine in MACHINES}
_MARKERS = "osD^v"


def report_of(outcomes: Runs[Outcome], settings: Settings, folder: Path, tariff: Tariff) -> Report:
    """Raises ReplayError: a figure cannot be written."""
    cells = summarise(outcomes, settings.seed, tariff)
    return texts("transparent").report(
        conclusion(cells),
        [_speedups(cells, folder), _losses(cells, folder), _delays(cells, folder)],
        tables(cells),
        samples=len(outcomes.by("sample")),
        settings=settings,
        tariff=tariff,
        days=WATCHED // 86400,
    )


def tables(cells: Sequence[Cell]) -> list[Exhibit]:
    page = texts("transparent")
    claims = [[*row, *_counts(row[0], cells)] for row in page.tables["claims"].rows]
    counts = [f"{rule}: {what}" for rule in DONATED for what in ("confirm", "contradict", "open")]
    ratios = [*(f"explicit / {rule}" for rule in DONATED), "best / mixed", "claims (all-idle)"]
    by_cell: dict[str, tuple[Callable[[Cell], list[str]], Sequence[str]]] = {
        "turnarounds": (_turnarounds, [*STRATEGIES, *ratios]),
        "costs": (_costs, [f"delay: {name}" for name in STRATEGIES]),
        "slowdowns": (_slowdowns, STRATEGIES),
        "credits": (_credits, [*STRATEGIES, "adaptive / mixed"]),
    }
    return [
        page.exhibit("claims", claims, (*counts, "for example (all-idle)")),
        *(
            page.exhibit(key, ([*_key(cell), *shown(cell)] for cell in cells), headings)
            for key, (shown, headings) in by_cell.items()
        ),
    ]


def _key(cell: Cell) -> list[str]:
    offered = f"{cell.offered:.0%} ({cell.level})"
    return [TITLES[cell.trace], f"×{cell.load:g}", offered, f"{cell.tasks:,}", f"{cell.mean:,} s"]


def _counts(claim: str, cells: Sequence[Cell]) -> list[str]:
    """The rows by what they say of a claim, by each rule, and one of the paper's rule."""
    by_rule = {rule: tallied(claim, cells, rule) for rule in DONATED}
    cell = example(by_rule["all-idle"])
    shown = "no row of this run"
    if cell is not None:
        shown = f"{TITLES[cell.trace]} ×{cell.load:g}, {cell.tasks:,} × {cell.mean:,} s"
    return [*(str(len(found[verdict])) for found in by_rule.values() for verdict in VERDICTS), shown]


def _turnarounds(cell: Cell) -> list[str]:
    hours = (str(cell.by[name].turnaround.over(HOUR)) for name in STRATEGIES)
    return [*hours, *map(str, cell.explicit.values()), str(cell.mixed), verdicts(cell, "all-idle")]


def _credits(cell: Cell) -> list[str]:
    return [*(str(cell.by[name].cost) for name in STRATEGIES), str(cell.cheaper)]


def _slowdowns(cell: Cell) -> list[str]:
    shares = (cell.by[name] for name in STRATEGIES)
    return [f"{share.slower:.3f} ({share.slower_per_processor:.3f})" for share in shares]


def _costs(cell: Cell) -> list[str]:
    donated, everything, mixed = (cell.by[name] for name in ("transparent", "all-idle", "mixed"))

    def used(share: Share) -> list[str]:
        return [f"{share.used:,.1f}", f"{share.lost:,.1f} ({share.lost / max(share.used, 1e-9):.0%})"]

    delays = (
        f"{share.delay:,.1f} ({share.later:,.1f} of {share.local_jobs:,.0f})"
        for share in (cell.by[name] for name in STRATEGIES)
    )
    mixes = (f"{mixed.used:,.1f}", f"{mixed.held:,.1f}")
    return [*used(donated), f"{donated.reclaims:,.1f}", *used(everything), *mixes, *delays]


def conclusion(cells: Sequence[Cell]) -> list[str]:
    """Findings of the experiment, in sentences with their figures."""
    page, every = texts("transparent"), Runs(cells)
    by_mean = dict(sorted(every.by("mean").items()))

    def means(figure: Callable[[Cell], float]) -> str:
        return _for_each({mean: f"{some.geometric(figure):.2f}" for mean, some in by_mean.items()})

    def lost(rule: Donated) -> str:
        shares = {mean: _lost([cell.by[rule] for cell in some]) for mean, some in by_mean.items()}
        return _for_each({mean: f"{share:.0%}" for mean, share in shares.items()})

    def by_strategy(figure: str) -> str:
        shares = {name: Runs(cell.by[name] for cell in cells) for name in STRATEGIES}
        return ", ".join(f"{some.geometric(figure):.2f} by {name}" for name, some in shares.items())

    delayed = {name: f"{name} in {sum(cell.by[name].later > 0 for cell in cells)}" for name in STRATEGIES}
    return [
        page.say(
            "speed",
            theirs=means(lambda cell: cell.explicit["all-idle"].value),
            ours=means(lambda cell: cell.explicit["transparent"].value),
            mixed=f"{every.geometric(lambda cell: cell.mixed.value):.2f}",
            cells=len(cells),
            chance="" if max(cell.samples for cell in cells) > 1 else page.say("one time"),
        ),
        page.say(
            "delay",
            cells=len(cells),
            donated=" and ".join(delayed[name] for name in DONATED),
            others=", ".join(text for name, text in delayed.items() if name not in DONATED),
        ),
        page.say(
            "slower",
            slower=by_strategy("slower"),
            per_processor=by_strategy("slower_per_processor"),
            cells=len(cells),
        ),
        page.say("lost", theirs=lost("all-idle"), ours=lost("transparent")),
        page.say(
            "cost",
            adaptive=means(lambda cell: cell.cheaper.value),
            transparent=means(lambda cell: cell.dearer),
            cells=len(cells),
        ),
        _on_claims(cells),
    ]


def _for_each(by_mean: Mapping[int, str]) -> str:
    return ", ".join(f"{text} (tasks of {mean:,} s)" for mean, text in by_mean.items())


def _lost(shares: Sequence[Share]) -> float:
    return sum(share.lost for share in shares) / max(sum(share.used for share in shares), 1e-9)


def _on_claims(cells: Sequence[Cell]) -> str:
    """The paper's claims, by whether the rows that they concern agree."""
    claims = [row[0] for row in texts("transparent").tables["claims"].rows]
    found: dict[tuple[bool, bool], list[str]] = {}
    for claim in claims:
        counts = tallied(claim, cells, "all-idle")
        found.setdefault((bool(counts["confirms"]), bool(counts["contradicts"])), []).append(claim)
    names = {
        "confirmed": (True, False),
        "contradicted": (False, True),
        "both": (True, True),
        "neither": (False, False),
    }
    lists = {name: ", ".join(found.get(kind, [])) or "none" for name, kind in names.items()}
    return texts("transparent").say("claims", claims=len({claim[0] for claim in claims}), **lists)


def _speedups(cells: Sequence[Cell], folder: Path) -> Drawing:
    caption = "Transparent against formal requests: above 1 it is faster (bars: 95 %)"
    panels = _lines(
        cells,
        "speedup: better explicit / transparent",
        lambda cell: cell.explicit["transparent"],
        bars=True,
    )
    for axes in panels.plots:
        axes.axhline(1, color="black", linewidth=0.8)
        ratio_scale(axes)
    return panels.save(folder / "figures/speedup.svg", caption, legend=True)


def _losses(cells: Sequence[Cell], folder: Path) -> Drawing:
    caption = "Donated processor time that is lost because a local job takes the processor"
    panels = _lines(
        cells, "lost share (transparent)", lambda cell: Interval.exactly(_lost([cell.by["transparent"]]))
    )
    return panels.save(folder / "figures/lost.svg", caption, legend=True)


def _lines(
    cells: Sequence[Cell], label: str, value: Callable[[Cell], Interval], *, bars: bool = False
) -> Panels:
    """For each trace a line by number and mean of tasks, over the load."""
    every = Runs(cells)
    kinds = sorted({(cell.mean, cell.tasks) for cell in cells})
    means, counts = (sorted({*some}) for some in zip(*kinds, strict=True))
    shown = [machine for machine in MACHINES if every.where(trace=machine.key)]
    panels = Panels(len(shown))
    for axes, machine in zip(panels.plots, shown, strict=True):
        for mean, tasks in kinds:
            line = every.where(trace=machine.key, mean=mean, tasks=tasks)
            line = Runs(sorted(line, key=lambda cell: cell.offered))
            with_bars(
                axes,
                line.values("offered").tolist(),
                [value(cell) for cell in line],
                bars=bars,
                color=f"C{means.index(mean)}",
                marker=_MARKERS[counts.index(tasks) % len(_MARKERS)],
                markersize=4,
                linewidth=1,
                elinewidth=0.4,
                label=f"{tasks:,} × {mean:,} s",
            )
        axes.set_xlabel("offered load")
        axes.xaxis.set_major_formatter(lambda load, _: f"{load:.0%}")
        axes.set_title(machine.title, fontsize="medium")
    for axes in panels.left:
        axes.set_ylabel(label)
    return panels


def _delays(cells: Sequence[Cell], folder: Path) -> Drawing:
    """Hours of delay by strategy, summed over the cells of one trace and load, relative to the work."""
    groups = Runs(cells).by("trace", "load")
    titles = [f"{TITLES[trace].replace(' ', chr(10), 1)}\n×{load:g}" for trace, load in groups]
    series: dict[str, list[Mean]] = {
        name: [Mean(sum(cell.by[name].delay for cell in some), 0.0) for some in groups.values()]
        for name in STRATEGIES
    }
    panels = Panels(1)
    panels.first.set(yscale="symlog", ylabel="hours by which local jobs start later")
    grouped_bars(panels.first, titles, series, 0.8 / len(STRATEGIES))
    caption = "Delay of local jobs, summed over one bag of each kind"
    return panels.save(folder / "figures/delays.svg", caption, legend=True)


def plan(
    samples: int = 4, traces: Path | None = None, donated_price: float = 0.2, **part: Any
) -> Plan[Piece, Outcome, Settings]:
    """Of that number of submission times for each trace and load."""
    settings = Settings(**part)
    report = partial(report_of, tariff=prices(donated_price))
    return Plan(settings, pieces(folder_of_traces(traces), settings, samples), report)


EXPERIMENT = Experiment(row=Outcome, run=run_piece, plan=plan)
