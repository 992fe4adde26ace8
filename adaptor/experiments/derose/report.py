"""What an experiment leaves for its reader: tables, figures and a page, from what is finished so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adaptor.experiments.derose.campaign import Piece, jobs_of
from adaptor.experiments.derose.design import Settings, Workload
from adaptor.experiments.derose.figures import draw_figures
from adaptor.experiments.derose.reasons import REASONS
from adaptor.experiments.derose.store import Store
from adaptor.experiments.derose.summary import Cell, TraceSummary, summarise
from adaptor.experiments.derose.table_1 import table_1
from adaptor.experiments.derose.tables import conclusion, setting, tables
from adaptor.figures import exhibits
from adaptor.figures.table_file import columns_of, write_table
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.jobs import Jobs


def write_report(wanted: Sequence[Piece], store: Store, settings: Settings) -> list[TraceSummary]:
    """Write the tables of results and of cells, a CSV for each table, the figures and `report.html`.

    Raises:
        ReplayError: nothing is finished, or something cannot be read or written.
    """
    finished = [piece for piece in wanted if store.has(piece)]
    if not finished:
        raise ReplayError(f"{store.folder}: no sample is finished, there is nothing to report")
    outcomes = store.read(finished)
    write_table(columns_of(outcomes), store.folder / "results")
    summaries = [
        summarise(trace, [each for each in outcomes if each.trace == trace], settings.seed)
        for trace in dict.fromkeys(piece.workload.key for piece in finished)
    ]
    write_table(_cells(summaries), store.folder / "cells")
    report = exhibits.Report(
        title="Adaptive against static requests (De Rose et al. 2008, §4.4)",
        conclusion=conclusion(summaries),
        drawings=draw_figures(summaries, store.folder / "figures"),
        setting=setting(settings),
        exhibits=[table_1(_replayed(finished)), *tables(summaries, settings)],
        remarks=REASONS,
    )
    exhibits.write_report(report, store.folder)
    return summaries


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
