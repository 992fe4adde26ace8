"""Files that a command has left in its folder."""

from __future__ import annotations

import csv
from pathlib import Path


def rows_of(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def top_of(folder: Path) -> str:
    """Begin of the page, in one line."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    return " ".join(page.partition("</section>")[0].split())
