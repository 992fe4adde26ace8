"""The help of a group, and what a mistyped command is told."""

from __future__ import annotations

import click
import pytest

from adaptor.cli.main import ELSEWHERE, SECTIONS, program
from adaptor.cli.operating.sites import COMMANDS, site
from adaptor.plugins import FOLDERS
from tests.cli.invoking import Cli


def test_help_shows_the_commands_under_four_headings(cli: Cli) -> None:
    lines = cli("--help").lines
    headings = [f"{heading}:" for heading in ("Every day", "Operating", "Credits", "Research")]
    places = [lines.index(heading) for heading in headings]
    assert places == sorted(places)
    for heading, commands in program.sections.items():
        start = lines.index(f"{heading}:")
        shown = [line.split()[0] for line in lines[start + 1 : start + 1 + len(commands)]]
        assert shown == list(commands)


@pytest.mark.parametrize("columns", [40, 50, 80, 120])
def test_help_fits_the_terminal_and_cuts_no_sentence(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for group in ((), ("site",), ("daemon",)):
        lines = cli(*group, "--help").lines
        examples = ("    adaptor ", "    printf ")
        assert [line for line in lines if len(line) > columns and not line.startswith(examples)] == []
        assert not any(line.endswith("...") and "[" not in line for line in lines)


def test_every_command_is_found_by_its_name() -> None:
    context = click.Context(program)
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert command is not None
        assert command.name == name


def test_a_mistyped_command(cli: Cli) -> None:
    assert "no command 'slot'; did you mean 'slots'?" in cli("site", "slot").err
    assert "no command 'zzz' (" in cli("zzz").err


def test_a_command_of_a_package_that_is_not_installed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    added = {name for section in program.sections.values() for name in section}
    assert set(ELSEWHERE) < added
    monkeypatch.setattr(program, "sections", SECTIONS)
    monkeypatch.setattr(site, "sections", {"Commands": COMMANDS})
    assert "Research" not in cli("--help").out
    for words, package in (
        (["replay", "bag"], "request-adaptor-experiments"),
        (["mcp", "keys"], "request-adaptor-mcp"),
        (["reclaim", "n1"], "request-adaptor-donation-agents"),
        (["site", "install-hooks", "hpc"], "request-adaptor-donation-agents"),
    ):
        done = cli(*words)
        assert done.code == 2
        assert (
            f"needs {package}: in a clone of the adaptor, python -m pip install ./{FOLDERS[package]}"
            in done.err
        )


def test_no_summary_is_cut_on_a_terminal_of_80_columns(cli: Cli) -> None:
    context = click.Context(program)
    commands = {name: program.get_command(context, name) for name in program.list_commands(context)}
    groups = [(), *((name,) for name, command in commands.items() if isinstance(command, click.Group))]
    for group in groups:
        lines = [line for line in cli(*group, "--help").lines if not line.startswith("Usage:")]
        assert [line for line in lines if line.endswith("...")] == []
