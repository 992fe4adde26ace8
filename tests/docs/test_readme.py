"""The README is a page that is read in a minute, and each command on it exists."""

from __future__ import annotations

import re

import click

from adaptor.cli.main import program
from tests.source_tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_is_read_in_a_minute_or_two() -> None:
    assert len(README.splitlines()) <= 110
    assert len(README.split()) <= 1000
    assert README.index("![") < 800, "the picture comes first"


def test_each_command_on_it_exists() -> None:
    context = click.Context(program)
    named = set(re.findall(r"\badaptor ([a-z]+)", README))
    assert named
    assert named <= {*program.list_commands(context), "of"}
