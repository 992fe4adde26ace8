"""All commands with their options, as Markdown, by the sections of `adaptor --help`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from adaptor.cli.main import program


def commands_text() -> str:
    """A heading for each section of the help, and below it its commands, those of groups after the group."""
    lines: list[str] = []
    context = click.Context(program, info_name="adaptor")
    for heading, names in program.sections.items():
        lines += [f"## {heading}", ""]
        for name in names:
            lines += _command(name, context)
    return "\n".join(lines)


def _command(name: str, above: click.Context) -> Iterator[str]:
    assert isinstance(above.command, click.Group)
    command = above.command.get_command(above, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=above)
    yield from (f"### {context.command_path}", "")
    yield from (
        "```text",
        " ".join([context.command_path, *command.collect_usage_pieces(context)]),
        "```",
        "",
    )
    yield from description(command.help or "")
    options = [
        record
        for each in command.params
        if isinstance(each, click.Option) and (record := each.get_help_record(context))
    ]
    yield from (f"* `{names}`: {_plain(' '.join(text.split()))}" for names, text in options)
    yield from [""] if options else []
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _command(each, context)


def description(text: str) -> Iterator[str]:
    r"""A command's help: paragraphs, and what stands after a `\b` line as it is."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b"):
            yield from _as_it_is(paragraph.splitlines()[1:])
        else:
            yield from _plain(paragraph).splitlines()
        yield ""


def _as_it_is(lines: list[str]) -> Iterator[str]:
    if lines and not lines[0].startswith(" "):
        yield _plain(lines.pop(0))
        yield ""
    yield from ("```text", *inspect.cleandoc("\n" + "\n".join(lines)).splitlines(), "```")


def _plain(text: str) -> str:
    """Words in backticks are code, and no other character is markup."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if part[:1] == "`" else re.sub(r"([\\*_<\[])", r"\\\1", part) for part in parts)
