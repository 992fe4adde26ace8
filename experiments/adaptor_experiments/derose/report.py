"""What an experiment leaves for its reader: tables, figures and a page, from what is finished so far."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from adaptor.figures import exhibits
from adaptor.figures.table_file import columns_of, write_table
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.jobs import Jobs
from adaptor_experiments.derose.campaign import Piece, jobs_of
from adaptor_experiments.derose.compared_figure import draw_comparison
from adaptor_experiments.derose.compared_tables import compared_tables, sentences
from adaptor_experiments.derose.comparison import Comparison, compare
from adaptor_experiments.derose.comparison_file import write_comparison
from adaptor_experiments.derose.design import HEURISTICS, Settings, Workload
from adaptor_experiments.derose.figures import draw_figures
from adaptor_experiments.derose.reasons import REASONS
from adaptor_experiments.derose.sample import Outcome
from adaptor_experiments.derose.store import Store
from adaptor_experiments.derose.summary import Cell, TraceSummary, summarise
from adaptor_experiments.derose.table_1 import table_1
from adaptor_experiments.derose.tables import conclusion, setting, table_2, tables


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What the results say."""

    sentences: tuple[str, ...]
    """The first is the one to remember."""
    comparisons: list[Comparison]
    summaries: list[TraceSummary]
    """Of adaptive against static, as in the paper; none where one of them was not run."""


def write_report(wanted: Sequence[Piece], store: Store, settings: Settings) -> Found:
    """Write the results and their comparison, a CSV for each table, the figures and `report.html`.

    Raises:
        ReplayError: nothing is finished, or something cannot be read or written.
    """
    finished = [piece for piece in wanted if store.has(piece)]
    if not finished:
        raise ReplayError(f"{store.folder}: no sample is finished, there is nothing to report")
    outcomes = store.read(finished)
    write_table(columns_of(outcomes), store.folder / "results")
    found = _found({piece.workload.key: piece.workload for piece in finished}, outcomes, settings)
    if found.summaries:
        write_table(_cells(found.summaries), store.folder / "cells")
    write_comparison(found.comparisons, found.sentences, settings, store.folder)
    exhibits.write_report(_page(found, finished, settings, store.folder), store.folder)
    return found


def _found(workloads: dict[str, Workload], outcomes: Sequence[Outcome], settings: Settings) -> Found:
    by_trace = {
        workload: [each for each in outcomes if each.trace == key] for key, workload in workloads.items()
    }
    comparisons = [compare(workload, part, settings.seed) for workload, part in by_trace.items()]
    summaries = [
        summarise(workload, part, settings.seed)
        for workload, part in by_trace.items()
        if {*HEURISTICS} <= {*settings.heuristics}
    ]
    return Found(sentences=sentences(comparisons), comparisons=comparisons, summaries=summaries)


def _page(found: Found, finished: Sequence[Piece], settings: Settings, folder: Path) -> exhibits.Report:
    papers = {*settings.heuristics} == {*HEURISTICS}
    figures = folder / "figures"
    compared = compared_tables(found.comparisons)
    plain = [table_1(_replayed(finished)), table_2(settings)]
    return exhibits.Report(
        title="Adaptive against static requests (De Rose et al. 2008, §4.4)"
        if papers
        else f"Heuristics compared: {', '.join(settings.heuristics)}",
        conclusion=(*found.sentences, *conclusion(found.summaries)),
        drawings=[*draw_comparison(found.comparisons, figures), *draw_figures(found.summaries, figures)],
        setting=setting(settings),
        exhibits=[*compared, *plain, *tables(found.summaries)] if found.summaries else [*compared, *plain],
        remarks=REASONS if found.summaries else (),
    )


def _replayed(finished: Sequence[Piece]) -> dict[Workload, Jobs]:
    return {
        piece.workload: jobs_of(piece) for piece in {each.workload.key: each for each in finished}.values()
    }


def _cells(summaries: Sequence[TraceSummary]) -> dict[str, list[Any]]:
    cells = [cell for summary in summaries for cell in summary.cells]
    plain = [name for name in Cell.__struct_fields__ if name != "speedup"]
    return {
        **{name: [getattr(cell, name) for cell in cells] for name in plain},
        "speedup": [cell.speedup.value for cell in cells],
        "low": [cell.speedup.low for cell in cells],
        "high": [cell.speedup.high for cell in cells],
    }
