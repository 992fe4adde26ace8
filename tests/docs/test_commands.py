"""The commands that the pages name exist, with the options that the pages give them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from adaptor.cli.main import program
from tests.source_tree import ROOT

SKILLS = sorted((ROOT / "skills").rglob("*.md"))
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "CHANGELOG.md"})
_END = re.compile(r"(?:^| )(?:[|;#(]|&&|\d?>|<).*$")
"""Where a command of a shell line ends."""
_OPEN = re.compile(r"…|\.\.\.|[A-Z]+$|\[")
"""A word that stands for others."""


def uses(text: str) -> Iterator[str]:
    """What follows `adaptor` in code within sentences, and in lines with a prompt."""
    prompts = re.findall(r"^\s*\$ (?:\S*/)?adaptor(?:\.pex)?((?: .*)?)$", text, re.MULTILINE)
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    for use in [*prompts, *re.findall(r"`adaptor( [^`\n]+)`", prose)]:
        yield _END.sub("", re.sub(r"'[^']*'", "TEXT", use.replace(r"\|", "|"))).strip()


def wrong(use: str) -> str | None:
    """What the command line does not know; None where it knows all."""
    commands: list[click.Command] = [program]
    for word in re.sub(r"--config \S+", "", use).split():
        if word == "--":
            return None  # another program's words
        if word.startswith("-"):
            name = word.split("=")[0]
            if not any(name in _options(command) for command in commands):
                return f"adaptor {use}: no option {name}"
        elif isinstance(commands[0], click.Group):
            if _OPEN.search(word):
                return None
            found = [_command(group, name) for group in commands for name in word.split("|")]
            if None in found:
                return f"adaptor {use}: no command {word}"
            commands = [each for each in found if each is not None]
        elif ":::" in use:
            return None  # the command for the values behind it
    return None


def _options(command: click.Command) -> set[str]:
    params = [*command.params, *([] if command is program else program.params)]
    return {"--help", "-h", *(name for each in params for name in (*each.opts, *each.secondary_opts))}


def _command(group: click.Command, name: str) -> click.Command | None:
    return group.get_command(click.Context(group), name) if isinstance(group, click.Group) else None


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_the_commands_of_a_page_exist(page: Path) -> None:
    found = [wrong(use) for use in uses(page.read_text(encoding="utf-8"))]
    assert [each for each in found if each] == []


@pytest.mark.parametrize("page", SKILLS, ids=[str(page.relative_to(ROOT)) for page in SKILLS])
def test_the_commands_of_a_skill_exist(page: Path) -> None:
    """Their blocks have no prompts: an agent copies the lines."""
    text = re.sub(r"^adaptor ", "$ adaptor ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = list(uses(text))
    assert len(found) >= 3
    assert [each for each in map(wrong, found) if each] == []


def test_what_does_not_exist_is_found() -> None:
    text = (
        "`adaptor site slots --mem x`, `adaptor replay trace|bag`, `adaptor trace …`, `adaptor why BAG`\n"
        "```console\n$ adaptor --config f.yaml run x.bag --cpus 2 && rm --force x\n"
        "$ ~/bin/adaptor submit --template 'a --b' | head --bytes=1\n```\n"
        "`adaptor sight list`, `adaptor site slots --jpg x`\n```console\n$ adaptor replay bog\n```\n"
    )
    assert [each for each in map(wrong, uses(text)) if each] == [
        "adaptor replay bog: no command bog",
        "adaptor sight list: no command sight",
        "adaptor site slots --jpg x: no option --jpg",
    ]
    assert len(list(uses(text))) == 9
