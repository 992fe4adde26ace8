"""One HTML page, without anything outside it, that shows the experiment beside the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from adaptor.experiments.derose.design import WORKLOADS, Settings, Workload
from adaptor.experiments.derose.reasons import REASONS
from adaptor.experiments.derose.summary import TraceSummary
from adaptor.figures import page
from adaptor.figures.canvas import Drawing

_TITLES = {workload.key: workload for workload in WORKLOADS}


def write_report_page(
    summaries: Sequence[TraceSummary],
    drawings: Sequence[Drawing],
    settings: Settings,
    path: Path,
) -> None:
    """Raises ReplayError: it cannot be written."""
    parts = [
        page.paragraph(_setting(settings)),
        page.heading("Table 3: average speedup of adaptive over static"),
        page.table(_TABLE_3, [_table_3_row(summary) for summary in summaries]),
        page.paragraph("In brackets: 95 % confidence intervals, by a bootstrap over the submission times."),
        page.heading("Where adaptive loses: few tasks of 10,000 s"),
        page.table(_LOSSES, [_losses_row(summary) for summary in summaries]),
        page.heading("How far from the possible"),
        page.table(_DISTANCE, [_distance_row(summary) for summary in summaries]),
        page.paragraph(
            "Mean turnaround over mean lower bound, geometric mean over the cells. No way of making"
            " requests can reach less than 1, and for big jobs even 1 would need every later local job to"
            " stand back."
        ),
        page.heading("Where our figures differ from the paper's, and why"),
        page.bullets(REASONS),
        *(page.picture(drawing.caption, drawing.svg) for drawing in drawings),
    ]
    page.write_page("Adaptive against static requests (De Rose et al. 2008, §4.4)", parts, path)


_TABLE_3 = ("workload", "paper", "ours", "geometric mean", "cells above 1", "submission times")
_LOSSES = ("workload", "cells below 1", "worst", "best")
_DISTANCE = ("workload", "static", "adaptive")


def table_3(summaries: Sequence[TraceSummary]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Headings and rows, as text."""
    return _TABLE_3, [_table_3_row(summary) for summary in summaries]


def _workload(summary: TraceSummary) -> Workload:
    return _TITLES[summary.trace]


def _table_3_row(summary: TraceSummary) -> list[str]:
    paper = _workload(summary).paper
    return [
        _workload(summary).title,
        "-" if paper is None else f"{paper:.2f}",
        str(summary.arithmetic),
        str(summary.geometric),
        f"{summary.faster:.0%}",
        str(summary.samples),
    ]


def _losses_row(summary: TraceSummary) -> list[str]:
    speedups = [cell.speedup.value for cell in summary.cells if cell.mean == 10_000 and cell.tasks <= 1000]
    if not speedups:
        return [_workload(summary).title, "-", "-", "-"]
    below = sum(speedup < 1 for speedup in speedups)
    return [
        _workload(summary).title,
        f"{below} of {len(speedups)}",
        f"{min(speedups):.2f}",
        f"{max(speedups):.2f}",
    ]


def _distance_row(summary: TraceSummary) -> list[str]:
    distances = (summary.static_distance, summary.adaptive_distance)
    return [_workload(summary).title, *(f"{distance:.2f}" for distance in distances)]


def _setting(settings: Settings) -> str:
    return (
        f"{len(settings.job_types)} kinds of grid job, max_pending_requests"
        f" {', '.join(map(str, settings.max_pending))}, max_tr {settings.max_tr:,} s, first tr"
        f" {settings.initial_tr:,.0f} s, growth factor {settings.growth_factor}, seed {settings.seed};"
        f"{' static asks for the whole machine always;' if settings.static_maximum else ''}"
        " conservative backfilling. A cell is a kind of grid job under one limit; its speedup is the mean"
        " turnaround by static over that by adaptive."
    )
