"""One HTML page, without anything outside it, for the tables and figures of an experiment."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from adaptor.simulation.files import naming, write_whole

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid #ccc; text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; }
"""


def heading(text: str, level: int = 2) -> str:
    return f"<h{level}>{html.escape(text)}</h{level}>"


def paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def bullets(texts: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in texts) + "</ul>"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(each)}</th>" for each in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def picture(caption: str, drawing: Path) -> str:
    """An SVG file, put into the page itself. Raises ReplayError: it cannot be read."""
    with naming(drawing):
        content = base64.b64encode(drawing.read_bytes()).decode("ascii")
    text, source = html.escape(caption), f"data:image/svg+xml;base64,{content}"
    return f'<figure><img alt="{text}" src="{source}"><figcaption>{text}</figcaption></figure>'


def write_page(title: str, parts: Iterable[str], path: Path) -> None:
    """`parts` are what the functions above return. Raises ReplayError: it cannot be written."""
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    body = "\n".join([heading(title, 1), *parts])
    text = f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'
    write_whole(path, text.encode())
