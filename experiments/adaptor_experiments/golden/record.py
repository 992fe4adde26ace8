"""The record of outcomes, and every difference from it."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from adaptor_experiments.golden.cases import CASES
from adaptor_experiments.resumable import all_rows
from adaptor_simulation.files import naming, write_whole

FOLDER = Path("fixtures/golden")
NO_OUTCOMES = frozenset({"decisions", "planning"})  # how often, and for how long, a rule was asked
_DIGITS = 9  # of floating-point numbers: a sum may be made in another order


class Record(msgspec.Struct, frozen=True):
    """The outcomes of one case."""

    figures: dict[str, dict[str, float | None]]
    """By group: the number of its rows, and means of columns."""
    hashes: dict[str, str]
    """By column of the full results."""


def record_of(name: str, traces: Path, processes: int) -> Record:
    """Raises ReplayError or TraceError: a trace cannot be read."""
    case = CASES[name]
    rows = all_rows(case.run, [*case.pieces(traces)], processes)
    groups = defaultdict(list)
    for row in rows:
        groups[" ".join(f"{column}={getattr(row, column)}" for column in case.groups)].append(row)
    figures = {
        key: {
            "rows": len(some),
            **{column: _mean([getattr(row, column) for row in some]) for column in case.figures},
        }
        for key, some in groups.items()
    }
    columns = [column for column in rows[0].__struct_fields__ if column not in NO_OUTCOMES]
    return Record(figures, {column: _hash([getattr(row, column) for row in rows]) for column in columns})


def _mean(values: Sequence[float]) -> float | None:
    """Mean of the values that are numbers, in six digits; None: none is."""
    known = [value for value in values if not math.isnan(value)]
    return float(f"{math.fsum(known) / len(known):.6g}") if known else None


def _hash(values: Sequence[Any]) -> str:
    rounded = [float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value for value in values]
    return hashlib.sha256(msgspec.json.encode(rounded)).hexdigest()


def read(folder: Path) -> dict[str, Record]:
    """By case. Raises ReplayError: the files cannot be read."""
    with naming(folder):
        figures = msgspec.json.decode((folder / "figures.json").read_bytes())
        hashes = msgspec.json.decode((folder / "hashes.json").read_bytes())
    return {name: Record(figures[name], hashes[name]) for name in figures}


def write(folder: Path, records: Mapping[str, Record]) -> None:
    for file, part in (("figures.json", "figures"), ("hashes.json", "hashes")):
        content = {name: getattr(records[name], part) for name in CASES if name in records}
        write_whole(folder / file, msgspec.json.format(msgspec.json.encode(content)) + b"\n")


def differences(recorded: Record, found: Record) -> Iterator[str]:
    """One line for each group, or column, that differs."""
    columns = {*recorded.hashes, *found.hashes}
    changed = sorted(name for name in columns if recorded.hashes.get(name) != found.hashes.get(name))
    if changed:
        yield f"columns that differ: {', '.join(changed)}"
    for group in dict.fromkeys((*recorded.figures, *found.figures)):
        before, after = recorded.figures.get(group, {}), found.figures.get(group, {})
        moved = [
            f"{name} {before.get(name)} → {after.get(name)}"
            for name in dict.fromkeys((*before, *after))
            if before.get(name) != after.get(name)
        ]
        if moved:
            yield f"{group}: {', '.join(moved)}"
