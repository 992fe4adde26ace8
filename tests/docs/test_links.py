"""Every relative link of the pages leads to a file, and its anchor to a heading there; each test they name is
there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.source_tree import ROOT

PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "fixtures").rglob("*.md")})
_LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """The text without fenced blocks and code, in which brackets are no links."""
    text = re.sub(r"^ *(```+|~~~+).*?^ *\1", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "``", text)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Of the headings, as GitHub and myst-parser form them."""
    text = re.sub(r"^ *(```+|~~~+).*?^ *\1", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = [re.sub(r"[^\w\- ]", "", each.strip().lower()) for each in re.findall(r"^#+ +(.*)$", text, re.M)]
    slugs: set[str] = set()
    for heading in found:
        slug, number = heading.replace(" ", "-"), 1
        while slug in slugs:
            slug, number = f"{heading.replace(' ', '-')}-{number}", number + 1
        slugs.add(slug)
    return frozenset(slugs)


def broken(page: Path) -> list[str]:
    wrong = []
    for link in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_relative_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_the_tests_that_prove_a_claim_exist(page: Path) -> None:
    named = set(re.findall(r"`(tests/[\w/.-]+\.py)", page.read_text(encoding="utf-8")))
    assert [test for test in sorted(named) if "/x/" not in test and not (ROOT / test).exists()] == []


def test_the_files_and_folders_that_make_names_exist() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    rooms = re.findall(r"^RULES +:= (.*)$", text, re.MULTILINE)[0].split()
    named = [f"tests/{room}" for room in rooms] + re.findall(r"(?<!\S)(?:\./)?tests/[\w/.*-]+", text)
    assert [path for path in named if not list(ROOT.glob(path))] == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# A title, with *marks*\n\n## Twice\n\n## Twice\n")
    page.write_text(
        "[a](other.md) [b](other.md#a-title-with-marks) [c](other.md#twice-1) [d](https://example.org/none)\n"
        "`[code](none.md)`\n\n```text\n[block](none.md)\n```\n"
        "[e](none.md) [f](other.md#none) [g](#none)\n"
    )
    assert broken(page) == ["none.md", "other.md#none", "#none"]
