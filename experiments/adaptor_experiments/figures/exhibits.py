"""What an experiment leaves for its reader: runs, tables, figures, and a page that begins with its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from adaptor.simulation.files import write_whole
from adaptor_experiments.figures import page
from adaptor_experiments.figures.canvas import Drawing
from adaptor_experiments.figures.table_file import as_csv


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


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What stands on the page, from its top to its end."""

    title: str
    conclusion: tuple[str, ...]
    """What was found, in sentences with their figures."""
    drawings: Sequence[Drawing]
    setting: str
    """How it was measured."""
    exhibits: Sequence[Exhibit]
    remarks: tuple[str, ...] = ()
    """On all of it; see `Exhibit.remarks`."""


def write_report(report: Report, folder: Path) -> None:
    """A CSV for each table, and `report.html`. Raises ReplayError: something cannot be written."""
    parts = [page.conclusion(report.conclusion)]
    parts += [page.picture(drawing.caption, drawing.svg) for drawing in report.drawings]
    parts.append(page.panel([page.heading("How it was measured"), page.paragraph(report.setting)]))
    for each in report.exhibits:
        write_whole(folder / f"{each.name}.csv", as_csv(each.headings, each.rows))
        shown = [page.heading(each.title), page.table(each.headings, each.rows), page.bullets(each.remarks)]
        parts.append(page.panel(shown))
    if report.remarks:
        title = page.heading("Where our figures differ from the paper's, and why")
        parts.append(page.panel([title, page.bullets(report.remarks)]))
    page.write_page(report.title, parts, folder / "report.html")
