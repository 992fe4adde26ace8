"""The tables of the experiment: heuristics compared, the goals, and the paper's tables beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from adaptor.figures.exhibits import Exhibit
from adaptor.simulation.jobs import Jobs
from adaptor.units import counted
from adaptor_experiments.derose.comparison import BIGGEST, CLEARLY_SLOWER, Cell, Comparison, Profile, Ratio
from adaptor_experiments.derose.design import Settings, Workload
from adaptor_experiments.derose.goals import REFERENCES, goals
from adaptor_experiments.derose.local_waits import AFTERWARDS
from adaptor_experiments.tables import texts

_DAY = 86_400
_Shown = Callable[[Comparison, str], str]


def compared_tables(comparisons: Sequence[Comparison]) -> list[Exhibit]:
    """The goals, where a heuristic is there that they are for; a table for each trace; all pairs."""
    names = list(comparisons[0].profiles)
    judged = [_goals(comparisons, name) for name in names if name not in REFERENCES]
    return [
        *(exhibit for exhibit in judged if exhibit.rows),
        *map(_of_trace, comparisons),
        *([_pairs(comparisons)] if len(names) > 1 else []),
    ]


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
    return texts("derose").exhibit(
        "compared",
        [[title, *(shown(found, name) for name in found.profiles)] for title, shown in _rows(found)],
        found.profiles,
        name=f"compared-{found.workload.key}",
        title=found.workload.title,
        names=", ".join(found.profiles),
        cells=counted(len(found.kinds), "cell"),
        times=counted(found.samples, "submission time"),
        days=AFTERWARDS // _DAY,
        biggest=f"{BIGGEST:,}",
    )


def _rows(found: Comparison) -> list[tuple[str, _Shown]]:
    """The title of each row, and what it shows of a heuristic."""
    rows: list[tuple[str, _Shown]] = []
    for over in (name for name in REFERENCES if name in found.profiles):
        means = sorted({kind.mean for kind in found.kinds})
        rows += [
            (f"times sooner than {over}, geometric mean", _ratio(over, lambda ratio: str(ratio.geometric))),
            *((f"  tasks of {mean:,} s", _by_mean(over, mean)) for mean in means),
            ("  arithmetic mean", _ratio(over, lambda ratio: str(ratio.arithmetic))),
            ("  worst cell", _ratio(over, lambda ratio: f"{ratio.worst} ({ratio.worst_kind})")),
            (f"  cells below {CLEARLY_SLOWER}", _ratio(over, lambda ratio: str(ratio.slower))),
        ]
    return [
        *rows,
        ("distance to the lower bound, geometric mean", _profile(lambda of: str(of.distance))),
        ("waste", _profile(lambda of: of.waste.percent)),
        ("added wait of local jobs, h per processor-hour", _profile(lambda of: str(of.local_wait))),
        ("requests for each bag", _profile(lambda of: f"{of.requests:.1f}")),
        ("  of them withdrawn", _profile(lambda of: f"{of.withdrawn:.1f}")),
        ("  changes of them in the queue", _profile(lambda of: f"{of.reshaped:.1f}")),
        ("planning steps for each bag", _profile(lambda of: f"{of.decisions:.0f}")),
        ("  processor time of each, ms", _profile(lambda of: f"{of.decision_time:.2f}")),
    ]


def _ratio(over: str, shown: Callable[[Ratio], str]) -> _Shown:
    def cell(found: Comparison, name: str) -> str:
        ratio = found.ratio(name, over)
        return "-" if ratio is None else shown(ratio)

    return cell


def _by_mean(over: str, mean: int) -> _Shown:
    return _ratio(over, lambda ratio: str(ratio.by_mean[mean]))


def _profile(shown: Callable[[Profile], str]) -> _Shown:
    return lambda found, name: shown(found.profiles[name])


def _pairs(comparisons: Sequence[Comparison]) -> Exhibit:
    names = list(comparisons[0].profiles)
    rows = [
        [
            found.workload.title,
            name,
            *(_ratio(over, lambda ratio: str(ratio.geometric))(found, name) for over in names),
        ]
        for found in comparisons
        for name in names
    ]
    return texts("derose").exhibit("pairs", rows, (f"than {name}" for name in names))


def table_1(replayed: Mapping[Workload, Jobs]) -> Exhibit:
    """The workloads. `replayed`: the jobs as they come in this run, at whatever load."""
    rows = [
        [
            workload.title,
            f"{workload.processors:,}",
            _printed(workload, "requests"),
            f"{len(jobs):,}",
            _printed(workload, "load"),
            f"{jobs.offered_load(workload.processors):.1%}",
            _printed(workload, "period"),
            f"{(jobs.submit[-1] - jobs.submit[0]) / _DAY:,.0f}",
            _reason(workload, "requests") or "not in the paper",
        ]
        for workload, jobs in replayed.items()
    ]
    return texts("derose").exhibit("table-1", rows)


def _printed(workload: Workload, what: str) -> str:
    number = texts("derose").numbers.get(f"{workload.key} {what}")
    return "-" if number is None else number.paper


def _reason(workload: Workload, what: str) -> str:
    number = texts("derose").numbers.get(f"{workload.key} {what}")
    return "" if number is None else number.reason


def table_2(settings: Settings) -> Exhibit:
    """The grid jobs."""
    fields = ("tasks", "means", "heterogeneities", "max_pending", "max_tr", "initial_tr")
    printed, ours = ([_listed(getattr(terms, field)) for field in fields] for terms in (Settings(), settings))
    table = texts("derose").tables["table-2"]
    rows = [[name, *pair, reason] for (name, reason), *pair in zip(table.rows, printed, ours, strict=True)]
    return texts("derose").exhibit("table-2", rows)


def _listed(values: Iterable[int] | float) -> str:
    return ", ".join(f"{value:,.0f}" for value in (values if isinstance(values, Iterable) else (values,)))


def paper_tables(comparisons: Sequence[Comparison]) -> list[Exhibit]:
    """Of adaptive against static, as in the paper."""
    page = texts("derose")
    return [
        page.exhibit(
            "table-3", [[*_speedup(found), found.reason] for found in map(AdaptiveOver, comparisons)]
        ),
        page.exhibit("losses", [_losses(AdaptiveOver(found)) for found in comparisons]),
        page.exhibit(
            "distance",
            [
                [
                    found.workload.title,
                    *(f"{found.profiles[name].distance.value:.2f}" for name in ("static", "adaptive")),
                ]
                for found in comparisons
            ],
        ),
    ]


class AdaptiveOver:
    """Adaptive over static on one trace."""

    def __init__(self, found: Comparison) -> None:
        ratio = found.ratio("adaptive", "static")
        assert ratio is not None  # both were run
        self.ratio, self.samples, self.workload = ratio, found.samples, found.workload
        self.cells = found.of("adaptive")
        self.paper = _printed(found.workload, "speedup")
        self.reason = _reason(found.workload, "speedup")

    @property
    def faster(self) -> float:
        """Share of the cells with a speedup above 1."""
        return sum(speedup(cell) > 1 for cell in self.cells) / len(self.cells)

    @property
    def few_long(self) -> list[float]:
        """The speedups of few tasks of 10,000 s."""
        return [speedup(cell) for cell in self.cells if cell.kind.mean == 10_000 and cell.kind.tasks <= 1000]


def speedup(cell: Cell) -> float:
    """Of a cell of adaptive: static / adaptive, of the mean turnarounds (§4.4)."""
    return cell.over["static"].value


def _speedup(found: AdaptiveOver) -> list[str]:
    ratio = found.ratio
    figures = [str(ratio.arithmetic), str(ratio.geometric), f"{found.faster:.0%}", str(found.samples)]
    return [found.workload.title, found.paper, *figures]


def _losses(found: AdaptiveOver) -> list[str]:
    speedups = found.few_long
    if not speedups:
        return [found.workload.title, "-", "-", "-"]
    below = sum(value < 1 for value in speedups)
    ends = (f"{value:.2f}" for value in (min(speedups), max(speedups)))
    return [found.workload.title, f"{below} of {len(speedups)}", *ends]
