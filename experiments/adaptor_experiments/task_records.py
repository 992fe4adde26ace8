"""Records of the tasks of real workflows: what their users asked for, and what they used.

A trace of Nextflow (CSV) is one record of a workflow; `wf_format` reads others. A process of the workflow is
a kind of task.
"""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import math
from collections import Counter
from pathlib import Path

import msgspec

from adaptor.units import counted
from adaptor_simulation.files import TraceError

_COLUMNS = ("process", "status", "submit", "realtime", "time", "memory", "peak_rss")
_READ = "rchar"  # a column that may be missing: bytes read


class TaskRecord(msgspec.Struct, frozen=True):
    """A task that finished. Seconds, bytes; None: not known."""

    kind: str
    submitted: float
    ran: float
    limit: float | None
    asked: int | None
    peak: int | None
    input: float | None = None
    """Bytes of its input files, or, in a trace of Nextflow, that it has read."""


def read_records(path: Path) -> tuple[list[TaskRecord], list[str]]:
    """The tasks in the order of their submission, and what was left out.

    Raises TraceError: the file cannot be read, or is no trace of Nextflow.
    """
    try:
        content = path.read_bytes()
        if content.startswith(b"\xfd7zXZ\x00"):
            content = lzma.decompress(content)
        elif content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        rows = csv.DictReader(io.StringIO(content.decode("utf-8")))
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: {error}") from error
    if missing := [column for column in _COLUMNS if column not in (rows.fieldnames or ())]:
        raise TraceError(f"{path}: a trace of Nextflow has the column {missing[0]}")
    found, left_out = list[TaskRecord](), Counter[str]()
    for row in rows:
        if row["status"] != "COMPLETED":
            left_out["not completed"] += 1
            continue
        try:
            submitted, ran, limit, asked, peak = (
                float(row[column]) for column in ("submit", "realtime", "time", "memory", "peak_rss")
            )
        except (ValueError, TypeError):
            left_out["what they asked for or used is not known"] += 1
            continue
        if min(ran, limit, asked, peak) <= 0:
            left_out["what they asked for or used is zero"] += 1
            continue
        found.append(
            TaskRecord(
                kind=row["process"],
                submitted=submitted / 1e3,
                ran=ran / 1e3,
                limit=limit / 1e3,
                asked=int(asked),
                peak=int(peak),
                input=_read(row.get(_READ)),
            )
        )
    found.sort(key=lambda task: task.submitted)
    return found, told(left_out)


def told(left_out: Counter[str]) -> list[str]:
    """A line for each reason for which tasks were left out."""
    return [f"{counted(number, 'task')} left out: {why}" for why, number in left_out.items()]


def _read(text: str | None) -> float | None:
    """Bytes; None: the column is missing, or has no number above 0."""
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if 0 < found < math.inf else None
