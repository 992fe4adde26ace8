"""`adaptor site`: list, slots, init, check; other packages add commands by the group `adaptor.cli.site`."""

from __future__ import annotations

import click

from adaptor.cli.command_groups import LazyGroup, show_help
from adaptor.plugins import AGENTS

COMMANDS = {
    "list": "adaptor.cli.operating.site_list:list_",
    "slots": "adaptor.cli.operating.site_slots:slots",
    "init": "adaptor.cli.operating.site_init:init",
    "check": "adaptor.cli.operating.site_check:check",
}


@click.group(
    cls=LazyGroup,
    sections={"Commands": COMMANDS},
    added={"Commands": "adaptor.cli.site"},
    elsewhere={"install-hooks": AGENTS},
    invoke_without_command=True,
)
@click.pass_context
def site(ctx: click.Context) -> None:
    """Set up and check clusters; show their free slots."""
    show_help(ctx)
