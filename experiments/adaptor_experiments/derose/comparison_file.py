"""The comparison for other programs: `comparison.json`, and `comparison.csv` with a line for each cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from adaptor.figures.table_file import write_table
from adaptor.simulation.files import write_whole
from adaptor_experiments.derose.comparison import CellOf, Comparison, Kind
from adaptor_experiments.derose.design import Settings
from adaptor_experiments.derose.goals import REFERENCES, goals

_KIND = Kind.__struct_fields__
_MEANS = tuple(name for name in CellOf.__struct_fields__ if name not in ("kind", "heuristic", "over"))
_BOUNDS = ("value", "low", "high")


def write_comparison(
    comparisons: Sequence[Comparison], found: Sequence[str], settings: Settings, folder: Path
) -> None:
    """Write both files; an interval that is not known is open above: its `high` is null, or inf in the CSV.

    Args:
        found: what the page says first.

    Raises:
        ReplayError: they cannot be written.
    """
    content = {
        "found": list(found),
        "settings": settings,
        "traces": [_trace(each) for each in comparisons],
        "goals": [
            {"met": goal.met, **msgspec.to_builtins(goal), "verdicts": list(map(_verdict, goal.verdicts))}
            for name in comparisons[0].profiles
            if name not in REFERENCES
            for goal in goals(comparisons, name)
        ],
    }
    text = msgspec.json.format(msgspec.json.encode(content), indent=1)
    write_whole(folder / "comparison.json", text + b"\n")
    write_table(_columns(comparisons), folder / "comparison")


def _verdict(verdict: Any) -> dict[str, Any]:
    return {"met": verdict.met, **msgspec.to_builtins(verdict)}


def _trace(each: Comparison) -> dict[str, Any]:
    workload = each.workload
    return {
        "trace": workload.key,
        "title": workload.title,
        "processors": workload.processors,
        "submission_times": each.samples,
        "cells": len(each.kinds),
        "heuristics": list(each.profiles.values()),
        "ratios": each.ratios,
    }


def _columns(comparisons: Sequence[Comparison]) -> dict[str, list[Any]]:
    cells = [(each, cell) for each in comparisons for cell in each.cells]
    names = list(comparisons[0].profiles)
    columns: dict[str, list[Any]] = {"trace": [each.workload.key for each, _ in cells]}
    for field in _KIND:
        columns[field] = [getattr(cell.kind, field) for _, cell in cells]
    columns["samples"] = [each.samples for each, _ in cells]
    columns["heuristic"] = [cell.heuristic for _, cell in cells]
    for field in _MEANS:
        columns[field] = [getattr(cell, field) for _, cell in cells]
    for name in names:
        for bound in _BOUNDS:
            title = f"over_{name}" if bound == "value" else f"over_{name}_{bound}"
            columns[title] = [
                getattr(cell.over[name], bound) if name in cell.over else "" for _, cell in cells
            ]
    return columns
