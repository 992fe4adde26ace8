"""Exhibits of an experiment: runs, tables, figures, and a page that begins with its end.

The page is one HTML file, without anything outside it.
"""

from __future__ import annotations

import base64
import csv
import html
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from adaptor.dashboard.document import stylesheet
from adaptor_experiments.figures.canvas import Drawing
from adaptor_simulation.files import naming, write_whole

_WORDS = 40  # characters from which on a cell is a sentence, which is to be wrapped


class Exhibit(msgspec.Struct, frozen=True, kw_only=True):
    """A table, as text."""

    name: str
    """Name of its file."""
    title: str
    headings: tuple[str, ...]
    rows: list[list[str]]
    remarks: tuple[str, ...] = ()
    """Remarks on where ours agrees with the paper, where not, and why."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the page, from its top to its end."""

    title: str
    conclusion: tuple[str, ...]
    """Findings in sentences with their figures."""
    drawings: Sequence[Drawing]
    setting: str
    """Way of measuring."""
    exhibits: Sequence[Exhibit]
    remarks: tuple[str, ...] = ()
    """On all of it; see `Exhibit.remarks`."""


def write(report: Report, runs: Sequence[msgspec.Struct], folder: Path) -> None:
    """Write `runs.csv` with a line for each run, each table as CSV, all in `tables.md`, and `report.html`.

    Raises:
        ReplayError: one cannot be written.
    """
    _write_csv(folder / "runs.csv", runs[0].__struct_fields__, map(msgspec.structs.astuple, runs))
    parts = [
        f"<h1>{html.escape(report.title)}</h1>",
        _section("What was found", _bullets(report.conclusion), kind="conclusion"),
    ]
    parts += [picture(drawing.caption, drawing.svg) for drawing in report.drawings]
    parts.append(_section("How it was measured", f"<p>{html.escape(report.setting)}</p>"))
    for each in report.exhibits:
        _write_csv(folder / f"{each.name}.csv", each.headings, each.rows)
        parts.append(_section(each.title, _table(each) + _bullets(each.remarks)))
    if report.remarks:
        title = "Where our figures differ from the paper's, and why"
        parts.append(_section(title, _bullets(report.remarks)))
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(report.title)}</title><style>{stylesheet()}</style>"
    )
    body = "\n".join(parts)
    write_whole(folder / "tables.md", "\n\n".join(map(_markdown, report.exhibits)).encode())
    text = f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'
    write_whole(folder / "report.html", text.encode())


def _markdown(exhibit: Exhibit) -> str:
    """A table as the pages of docs/ have it."""
    lines = [exhibit.headings, ("---",) * len(exhibit.headings), *exhibit.rows]
    return "\n".join((exhibit.title, "", *(f"| {' | '.join(line)} |" for line in lines)))


def _write_csv(path: Path, headings: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def _section(heading: str, content: str, kind: str = "panel") -> str:
    """A section of the page in a box, as the parts of the live page are."""
    return f'<section class="{kind}"><h2>{html.escape(heading)}</h2>{content}</section>'


def _bullets(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{html.escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def _table(exhibit: Exhibit) -> str:
    """In a box of its own, in which it is moved sideways where the page is too narrow for it."""
    head = "".join(f"<th>{html.escape(each)}</th>" for each in exhibit.headings)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in exhibit.rows)
    return (
        '<div class="scroll" tabindex="0">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    opening = '<td class="words">' if len(text) > _WORDS else "<td>"
    return f"{opening}{html.escape(text)}</td>"


def picture(caption: str, drawing: Path) -> str:
    """An SVG file, put into the page itself. Raises ReplayError: it cannot be read."""
    with naming(drawing):
        content = base64.b64encode(drawing.read_bytes()).decode("ascii")
    source = f"data:image/svg+xml;base64,{content}"
    return f'<figure><img alt="{html.escape(caption)}" src="{source}"></figure>'
