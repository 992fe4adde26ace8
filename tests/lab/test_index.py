"""The index of the laboratory: all that can be run is in it, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.source_tree import ROOT

LAB = ROOT / "lab"
INDEX = (LAB / "README.md").read_text(encoding="utf-8")


def command(path: Path) -> str:
    """Its name after `python -m`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__main__" else parts)


def test_the_index_has_what_can_be_run_and_nothing_else() -> None:
    runs = {
        command(path)
        for path in LAB.rglob("*.py")
        if path.name == "__main__.py" or '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    # Started by others: `shim_clients` for its clients.
    others = {"lab.campaign.shim_programs", "lab.campaign.nextflow_calls"}
    assert set(re.findall(r"^\| `(lab[\w.]*)`", INDEX, re.MULTILINE)) == runs - others


def test_its_links_lead_to_pages_and_their_headings() -> None:
    for page, _, heading in re.findall(r"\]\(([^)#]+)(#([^)]+))?\)", INDEX):
        text = (LAB / page).read_text(encoding="utf-8")
        slugs = {
            re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).strip().replace(" ", "-")
            for line in text.splitlines()
            if line.startswith("#")
        }
        assert not heading or heading in slugs, (page, heading)
