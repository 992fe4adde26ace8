"""A table of results as a file: CSV for everything, Parquet for those who go on with it elsewhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from adaptor.simulation.files import naming, write_whole

TableFormat = Literal["csv", "parquet"]
FORMATS: tuple[TableFormat, ...] = ("csv", "parquet")


def write_table(columns: Mapping[str, Sequence[Any]], stem: Path, kind: TableFormat) -> None:
    """Write named columns of equal length to `stem` with the ending of its format, whole or not at all.

    A table of the same name in another format goes, so that none stays behind that knows less.

    Raises:
        ReplayError: it cannot be written.
    """
    path = stem.with_suffix(f".{kind}")
    if kind == "csv":
        write_whole(path, as_csv(columns, zip(*columns.values(), strict=True)))
    else:
        write_whole(path, _as_parquet(columns))
    with naming(path):
        for other in FORMATS:
            if other != kind:
                stem.with_suffix(f".{other}").unlink(missing_ok=True)


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


def _as_parquet(columns: Mapping[str, Sequence[Any]]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(dict(columns)), sink)
    return sink.getvalue()
