"""One HTML page, without anything outside it, that shows the experiment beside the paper."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path

from adaptor.replay.derose.design import WORKLOADS, Settings, Workload
from adaptor.replay.derose.figures import Figure
from adaptor.replay.derose.reasons import REASONS
from adaptor.replay.derose.summary import Interval, TraceSummary
from adaptor.replay.errors import ReplayError

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid #ccc; text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; }
"""
_TITLES = {workload.key: workload for workload in WORKLOADS}


def write_page(
    summaries: Sequence[TraceSummary],
    figures: Sequence[tuple[Figure, Path]],
    settings: Settings,
    path: Path,
) -> None:
    """Raises ReplayError: it cannot be written."""
    parts = [
        "<h1>Adaptive against static requests (De Rose et al. 2008, §4.4)</h1>",
        f"<p>{html.escape(_setting(settings))}</p>",
        "<h2>Table 3: average speedup of adaptive over static</h2>",
        _table(_TABLE_3, [_table_3_row(summary) for summary in summaries]),
        "<p>In brackets: 95 % confidence intervals, by a bootstrap over the submission times.</p>",
        "<h2>Where adaptive loses: few tasks of 10,000 s</h2>",
        _table(_LOSSES, [_losses_row(summary) for summary in summaries]),
        "<h2>How far from the possible</h2>",
        _table(_DISTANCE, [_distance_row(summary) for summary in summaries]),
        "<p>Mean turnaround over mean lower bound, geometric mean over the cells. No way of making"
        " requests can reach less than 1, and for big jobs even 1 would need every later local job to"
        " stand back.</p>",
        "<h2>Where our figures differ from the paper's, and why</h2>",
        "<ul>" + "".join(f"<li>{html.escape(reason)}</li>" for reason in REASONS) + "</ul>",
        *(_picture(figure, drawing) for figure, drawing in figures),
    ]
    head = f'<meta charset="utf-8"><title>Request adaptor: De Rose replayed</title><style>{_STYLE}</style>'
    body = "\n".join(parts)
    try:
        path.write_text(
            f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n',
            encoding="utf-8",
        )
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror or error}") from error


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
        _shown(summary.arithmetic),
        _shown(summary.geometric),
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


def _shown(interval: Interval) -> str:
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _setting(settings: Settings) -> str:
    return (
        f"{len(settings.job_types)} kinds of grid job, max_pending_requests"
        f" {', '.join(map(str, settings.max_pending))}, max_tr {settings.max_tr:,} s, first tr"
        f" {settings.initial_tr:,.0f} s, growth factor {settings.growth_factor}, seed {settings.seed};"
        f"{' static asks for the whole machine always;' if settings.static_maximum else ''}"
        " conservative backfilling. A cell is a kind of grid job under one limit; its speedup is the mean"
        " turnaround by static over that by adaptive."
    )


def _table(headings: Sequence[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(entry)}</td>" for entry in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _picture(figure: Figure, drawing: Path) -> str:
    content = base64.b64encode(drawing.read_bytes()).decode("ascii")
    return (
        f"<h2>{html.escape(figure.caption)}</h2>"
        f'<img alt="{html.escape(figure.caption)}" src="data:image/svg+xml;base64,{content}">'
    )
