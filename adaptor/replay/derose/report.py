"""What an experiment leaves for its reader: tables, figures and a page, from what is finished so far."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import msgspec

from adaptor.replay.derose.campaign import Piece
from adaptor.replay.derose.design import Settings
from adaptor.replay.derose.figures import draw_figures
from adaptor.replay.derose.page import table_3, write_page
from adaptor.replay.derose.store import Store
from adaptor.replay.derose.summary import Cell, TraceSummary, summarise
from adaptor.replay.errors import ReplayError


def write_report(wanted: Sequence[Piece], store: Store, settings: Settings) -> list[TraceSummary]:
    """Write `results.csv`, `cells.csv`, `table-3.csv`, the figures and `report.html`.

    Raises:
        ReplayError: nothing is finished, or something cannot be read or written.
    """
    finished = [piece for piece in wanted if store.has(piece.workload, piece.sample)]
    if not finished:
        raise ReplayError(f"{store.folder}: no sample is finished, there is nothing to report")
    outcomes = [each for piece in finished for each in store.read(piece.workload, piece.sample)]
    store.write_all(outcomes)
    summaries = [
        summarise(trace, [each for each in outcomes if each.trace == trace], settings.seed)
        for trace in dict.fromkeys(piece.workload.key for piece in finished)
    ]
    _write_cells(summaries, store.folder / "cells.csv")
    headings, rows = table_3(summaries)
    _write_table(store.folder / "table-3.csv", [list(headings), *rows])
    figures = draw_figures(summaries, store.folder / "figures")
    write_page(summaries, figures, settings, store.folder / "report.html")
    return summaries


def _write_cells(summaries: Sequence[TraceSummary], path: Path) -> None:
    plain = [name for name in Cell.__struct_fields__ if name != "speedup"]
    rows = [
        [*(str(getattr(cell, name)) for name in plain), *map(str, msgspec.structs.astuple(cell.speedup))]
        for summary in summaries
        for cell in summary.cells
    ]
    _write_table(path, [[*plain, "speedup", "low", "high"], *rows])


def _write_table(path: Path, rows: list[list[str]]) -> None:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror or error}") from error
