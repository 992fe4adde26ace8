"""A table of results as a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from adaptor.simulation.files import write_whole


def write_table(columns: Mapping[str, Sequence[Any]], stem: Path) -> None:
    """Write named columns of equal length to `stem`.csv, whole or not at all.

    Raises:
        ReplayError: it cannot be written.
    """
    write_whole(stem.with_suffix(".csv"), as_csv(columns, zip(*columns.values(), strict=True)))


def as_csv(headings: Iterable[str], rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8")


def columns_of(rows: Sequence[msgspec.Struct]) -> dict[str, list[Any]]:
    """The fields of structs of one type, of which there is at least one."""
    columns = zip(*map(msgspec.structs.astuple, rows), strict=True)
    return dict(zip(rows[0].__struct_fields__, map(list, columns), strict=True))
