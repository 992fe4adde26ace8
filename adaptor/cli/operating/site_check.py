"""`adaptor site check`: the configuration against the live scheduler."""

from __future__ import annotations

from collections.abc import Mapping

import click

from adaptor.cli.json_output import print_json
from adaptor.cli.options import config_option, json_option, no_such_site
from adaptor.cli.words import coloured, printable
from adaptor.config.loading import config_path, load_config
from adaptor.config.schema import SiteConfig
from backends.findings import Finding

_COLOURS = {"ok": "done", "warning": "walltime", "error": "failed"}
"""Levels, and the states whose colours they take."""


@click.command()
@click.argument("name", required=False)
@config_option
@json_option
def check(name: str | None, config: str | None, as_json: bool) -> int:
    """Compare sites (default: all) with their live schedulers.

    Submits nothing. Exit code 1: an error was found.

    \b
    Example:
      adaptor site check --config cluster.yaml
    """
    sites = load_config(config_path(config)).sites
    found = {each: findings(sites[each]) for each in _chosen(sites, name)}
    if as_json:
        print_json(
            [
                {"site": each, "level": finding.level, "text": finding.text}
                for each, list_ in found.items()
                for finding in list_
            ]
        )
    else:
        for each, list_ in found.items():
            for finding in list_:
                level = coloured(f"{finding.level:<7}", _COLOURS[finding.level])
                click.echo(f"{each}: {level} {printable(finding.text)}")
    return int(any(finding.level == "error" for list_ in found.values() for finding in list_))


def _chosen(sites: Mapping[str, SiteConfig], name: str | None) -> list[str]:
    if name is None:
        return list(sites)
    if name not in sites:
        raise no_such_site(name, sites)
    return [name]


def findings(site: SiteConfig) -> list[Finding]:
    """What is right, what is doubtful and what is wrong with a site's configuration."""
    from adaptor.daemon.spool.check import check_spool

    return [*_scheduler_findings(site), *check_spool(site)]


def _scheduler_findings(site: SiteConfig) -> list[Finding]:
    from adaptor.daemon.remote.check import check_where_it_is
    from backends.registry import backend_type

    return check_where_it_is(site, backend_type(site.backend).check_site)
