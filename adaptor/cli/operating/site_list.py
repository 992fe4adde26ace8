"""`adaptor site list`: the sites and the state of their queues."""

from __future__ import annotations

import click

from adaptor import api
from adaptor.cli.json_output import print_json
from adaptor.cli.operating.site_table import configured_sites, site_lines
from adaptor.cli.options import config_option, json_option
from adaptor.client.asking import ask
from adaptor.errors import NoDaemonError


@click.command("list")
@config_option
@json_option
def list_(config: str | None, as_json: bool) -> None:
    """List the sites and the state of their queues.

    \b
    Example:
      adaptor site list
    """
    try:
        sites = ask(api.GetSites())
    except NoDaemonError:
        click.echo("adaptor: no daemon is running; reading the configuration", err=True)
        sites = configured_sites(config)
    if as_json:
        print_json(sites)
        return
    for line in site_lines(sites):
        click.echo(line)
