"""What an experiment leaves for its reader: all runs, tables, figures, and a page with both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from adaptor.figures import page
from adaptor.figures.canvas import Drawing
from adaptor.figures.table_file import as_csv
from adaptor.simulation.files import write_whole


class Exhibit(msgspec.Struct, frozen=True, kw_only=True):
    """A table, as text."""

    name: str
    """Of its file."""
    title: str
    headings: tuple[str, ...]
    rows: list[list[str]]
    remarks: tuple[str, ...] = ()
    """Where ours agrees with the paper, where not, and why."""


def write_runs(runs: Sequence[msgspec.Struct], path: Path) -> None:
    """One line for each run. Raises ReplayError: it cannot be written."""
    rows = [map(str, msgspec.structs.astuple(run)) for run in runs]
    write_whole(path, as_csv(runs[0].__struct_fields__, rows))


def write_exhibits(
    title: str,
    opening: str,
    exhibits: Sequence[Exhibit],
    drawings: Iterable[Drawing],
    folder: Path,
) -> None:
    """A CSV for each table, and `report.html`. Raises ReplayError: something cannot be written."""
    parts = [page.paragraph(opening)]
    for each in exhibits:
        write_whole(folder / f"{each.name}.csv", as_csv(each.headings, each.rows))
        parts += [page.heading(each.title), page.table(each.headings, each.rows), page.bullets(each.remarks)]
    parts += [page.picture(drawing.caption, drawing.svg) for drawing in drawings]
    page.write_page(title, parts, folder / "report.html")
