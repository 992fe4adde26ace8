"""A group of commands, each imported only when it is needed, and shown in help under headings."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import click

from adaptor.did_you_mean import did_you_mean
from adaptor.plugins import installed, needs

_LONGEST = 200  # letters of a command's line in help, which is wrapped and not cut


class LazyGroup(click.Group):
    """`sections` maps a heading of the help to its commands: from name to `module:attribute`.

    `added` maps headings to groups of entry points, by which other packages add commands below them;
    `elsewhere` maps the name of such a command to its package, for the message where that is missing.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, str]],
        added: Mapping[str, str] | None = None,
        elsewhere: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._own = sections
        self._added = added or {}
        self._elsewhere = elsewhere or {}

    @cached_property
    def sections(self) -> Mapping[str, Mapping[str, str]]:
        """All commands by heading."""
        found = {heading: dict(commands) for heading, commands in self._own.items()}
        for heading, group in self._added.items():
            found.setdefault(heading, {}).update(
                {name: point.value for name, point in sorted(installed(group).items())}
            )
        return {heading: commands for heading, commands in found.items() if commands}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_places(self.sections))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        place = _places(self._own).get(cmd_name) or _places(self.sections).get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for heading, section in self.sections.items():
            with formatter.section(heading):
                commands = ((name, self.get_command(ctx, name)) for name in section)
                rows = [
                    (f"{name:<{width}}", each.get_short_help_str(_LONGEST))
                    for name, each in commands
                    if each and not each.hidden
                ]
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            if package := self._elsewhere.get(args[0]):
                ctx.fail(needs(f"'{args[0]}'", package))
            hint = did_you_mean(args[0], self.list_commands(ctx))
            ctx.fail(f"no command '{args[0]}'{'; ' if hint else ''}{hint}")
        return super().resolve_command(ctx, args)


def _places(sections: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {name: place for section in sections.values() for name, place in section.items()}


def show_help(ctx: click.Context) -> None:
    """The help of a group that was called without a command."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
