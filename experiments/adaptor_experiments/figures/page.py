"""One HTML page, without anything outside it, for the tables and figures of an experiment."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from adaptor.dashboard.document import stylesheet
from adaptor.simulation.files import naming, write_whole

_WORDS = 40
"""Characters from which on a cell is a sentence, which is to be wrapped."""


def heading(text: str, level: int = 2) -> str:
    return f"<h{level}>{html.escape(text)}</h{level}>"


def paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def bullets(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{html.escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def conclusion(texts: Iterable[str]) -> str:
    """What the reader came for."""
    return f'<section class="conclusion">{heading("What was found")}{bullets(texts)}</section>'


def panel(parts: Iterable[str]) -> str:
    """What belongs together, in a box, as the parts of the live page are."""
    return f'<section class="panel">{"".join(parts)}</section>'


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In a box of its own, in which it is moved sideways where the page is too narrow for it."""
    head = "".join(f"<th>{html.escape(each)}</th>" for each in headings)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
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


def write_page(title: str, parts: Iterable[str], path: Path) -> None:
    """`parts` are what the functions above return. Raises ReplayError: it cannot be written."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{stylesheet()}</style>"
    )
    body = "\n".join([heading(title, 1), *parts])
    text = f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'
    write_whole(path, text.encode())
