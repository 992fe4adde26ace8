"""A table of results as a file: CSV for everything, Parquet for those who go on with it elsewhere."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from adaptor.replay.errors import ReplayError

TableFormat = Literal["csv", "parquet"]
FORMATS: tuple[TableFormat, ...] = ("csv", "parquet")


def write_table(columns: Mapping[str, Sequence[Any]], stem: Path, kind: TableFormat) -> Path:
    """Write named columns of equal length to `stem` with the ending of its format, whole or not at all.

    A table of the same name in another format goes, so that none stays behind that knows less.

    Raises:
        ReplayError: it cannot be written.
    """
    content = _as_csv(columns) if kind == "csv" else _as_parquet(columns)
    path = stem.with_suffix(f".{kind}")
    try:
        replace(path, content)
        for other in FORMATS:
            if other != kind:
                stem.with_suffix(f".{other}").unlink(missing_ok=True)
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror or error}") from error
    return path


def replace(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all. Raises OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _as_csv(columns: Mapping[str, Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode("utf-8")


def _as_parquet(columns: Mapping[str, Sequence[Any]]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(dict(columns)), sink)
    return sink.getvalue()
