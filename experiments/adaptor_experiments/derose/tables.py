"""The tables of the experiment beside those of the paper, and what they say in words."""

from __future__ import annotations

from collections.abc import Sequence

from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.derose.design import PARTS, Settings
from adaptor_experiments.derose.summary import Cell, TraceSummary

_TABLE_3 = ("workload", "paper", "ours", "geometric mean", "cells above 1", "submission times")
_LOSSES = ("workload", "cells below 1", "worst", "best")
_DISTANCE = ("workload", "static", "adaptive")


def tables(summaries: Sequence[TraceSummary]) -> list[Exhibit]:
    """Of adaptive against static."""
    return [
        Exhibit(
            name="table-3",
            title="Table 3: average speedup of adaptive over static",
            headings=(*_TABLE_3, "reason"),
            rows=[[*_table_3_row(each), each.workload.speedup_reason] for each in summaries],
            remarks=(
                "In brackets: 95 % confidence intervals, by a bootstrap over the submission times; with one"
                " submission time there are none.",
                "A cell is a kind of grid job under one limit; its speedup is the mean turnaround by static"
                " over that by adaptive.",
            ),
        ),
        Exhibit(
            name="losses",
            title="Where adaptive loses: few tasks of 10,000 s",
            headings=_LOSSES,
            rows=[_losses_row(summary) for summary in summaries],
        ),
        Exhibit(
            name="distance",
            title="How far from the possible",
            headings=_DISTANCE,
            rows=[_distance_row(summary) for summary in summaries],
            remarks=(
                "Mean turnaround over mean lower bound, geometric mean over the cells. No way of making"
                " requests can reach less than 1, and for big jobs even 1 would need every later local job to"
                " stand back.",
            ),
        ),
    ]


def table_2(settings: Settings) -> Exhibit:
    whole = PARTS["paper"]
    usual = Settings()
    rows = [
        ("number of tasks per job", whole.tasks, settings.tasks, ""),
        ("task mean execution time, s", whole.means, settings.means, ""),
        (
            "heterogeneity",
            whole.heterogeneities,
            settings.heterogeneities,
            "uniform between 1/2 and 3/2 of the mean for 2, 1/4 and 7/4 for 4; ours are whole seconds",
        ),
        ("limit of pending requests", whole.max_pending, settings.max_pending, "in the text"),
        ("max_tr, s", (usual.max_tr,), (settings.max_tr,), "in the text"),
        ("first tr, s", (round(usual.initial_tr),), (round(settings.initial_tr),), "in the text"),
    ]
    return Exhibit(
        name="table-2",
        title="Table 2: the grid jobs",
        headings=("parameter", "paper", "ours", "reason"),
        rows=[[name, _listed(paper), _listed(ours), reason] for name, paper, ours, reason in rows],
    )


def _listed(values: Sequence[int]) -> str:
    return ", ".join(f"{value:,}" for value in values)


def table_3(summaries: Sequence[TraceSummary]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Headings and rows, as text."""
    return _TABLE_3, [_table_3_row(summary) for summary in summaries]


def conclusion(summaries: Sequence[TraceSummary]) -> tuple[str, ...]:
    """In sentences."""
    return (*map(_on_the_whole, summaries), *_on_losses(summaries))


def setting(settings: Settings) -> str:
    return (
        f"{len(settings.job_types)} kinds of grid job, max_pending_requests"
        f" {', '.join(map(str, settings.max_pending))}, max_tr {settings.max_tr:,} s, first tr"
        f" {settings.initial_tr:,.0f} s, growth factor {settings.growth_factor}, random numbers of seed"
        f" {settings.seed};"
        f"{' static asks for the whole machine always;' if settings.static_maximum else ''}"
        f"{f' interarrival times × {settings.stretch:g};' if settings.stretch != 1 else ''}"
        " conservative backfilling."
    )


def _on_the_whole(summary: TraceSummary) -> str:
    workload = summary.workload
    paper = "" if workload.paper is None else f" (the paper: {workload.paper:.2f})"
    return (
        f"{workload.title}: adaptive is {summary.geometric} times as fast as static in the geometric mean,"
        f" and the faster one in {summary.faster:.0%} of the cells. The mean of the speedups, in which single"
        f" long waits of static count most, is {summary.arithmetic}{paper}. {_times(summary.samples)}."
    )


def _on_losses(summaries: Sequence[TraceSummary]) -> list[str]:
    lost = [(each.workload.title, _few_long(each)) for each in summaries]
    told = [
        f"{sum(cell.speedup.value < 1 for cell in cells)} of {len(cells)} cells on {title}"
        for title, cells in lost
        if cells
    ]
    return (
        [f"Where up to 1,000 tasks take 10,000 s, adaptive is slower in {', '.join(told)}."] if told else []
    )


def _times(samples: int) -> str:
    return f"{samples} submission times" if samples > 1 else "One submission time, which says little"


def _few_long(summary: TraceSummary) -> list[Cell]:
    return [cell for cell in summary.cells if cell.mean == 10_000 and cell.tasks <= 1000]


def _table_3_row(summary: TraceSummary) -> list[str]:
    paper = summary.workload.paper
    return [
        summary.workload.title,
        "-" if paper is None else f"{paper:.2f}",
        str(summary.arithmetic),
        str(summary.geometric),
        f"{summary.faster:.0%}",
        str(summary.samples),
    ]


def _losses_row(summary: TraceSummary) -> list[str]:
    speedups = [cell.speedup.value for cell in _few_long(summary)]
    if not speedups:
        return [summary.workload.title, "-", "-", "-"]
    below = sum(speedup < 1 for speedup in speedups)
    return [
        summary.workload.title,
        f"{below} of {len(speedups)}",
        f"{min(speedups):.2f}",
        f"{max(speedups):.2f}",
    ]


def _distance_row(summary: TraceSummary) -> list[str]:
    distances = (summary.static_distance, summary.adaptive_distance)
    return [summary.workload.title, *(f"{distance:.2f}" for distance in distances)]
