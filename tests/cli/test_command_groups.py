"""The help of a group, and what a mistyped command is told."""

from __future__ import annotations

import click

from adaptor.cli.main import SECTIONS, program
from tests.cli.invoking import Cli


def test_help_shows_the_commands_under_four_headings(cli: Cli) -> None:
    lines = cli("--help").lines
    headings = [f"{heading}:" for heading in ("Daily work", "Credits", "Operating", "Research")]
    places = [lines.index(heading) for heading in headings]
    assert places == sorted(places)
    for heading, commands in SECTIONS.items():
        start = lines.index(f"{heading}:")
        shown = [line.split()[0] for line in lines[start + 1 : start + 1 + len(commands)]]
        assert shown == list(commands)


def test_each_command_stands_in_the_folder_of_its_heading() -> None:
    folders = {"Daily work": "daily", "Credits": "credits", "Operating": "operating", "Research": "research"}
    for heading, commands in SECTIONS.items():
        assert all(f".cli.{folders[heading]}." in place for place in commands.values())


def test_every_command_is_found_by_its_name() -> None:
    context = click.Context(program)
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert command is not None
        assert command.name == name


def test_a_mistyped_command(cli: Cli) -> None:
    assert "no command 'slot'; did you mean 'slots'?" in cli("site", "slot").err
    assert "no command 'zzz' (" in cli("zzz").err
