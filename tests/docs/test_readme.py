"""The tables of the README name every command, each in the table of its section in `adaptor --help`."""

from __future__ import annotations

import re

import pytest

from adaptor.cli.main import program
from tests.source_tree import ROOT

SECTIONS = program.sections
COMMANDS = {name for section in SECTIONS.values() for name in section}


def table(heading: str) -> set[str]:
    """The commands in the first column of the table below the heading."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^##+ {heading}\n(.*?)^(?:##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"README.md has no heading {heading}"
    cells = re.findall(r"^\| (`.*?) \| ", found[1], re.MULTILINE)
    return {
        re.sub("^adaptor ", "", code).split()[0] for cell in cells for code in re.findall(r"`([^`]+)`", cell)
    }


@pytest.mark.parametrize("section", SECTIONS)
def test_a_command_stands_in_the_table_of_its_section_only(section: str) -> None:
    assert table(section) & COMMANDS == set(SECTIONS[section])
