"""`adaptor site check`: the configuration against the live scheduler."""

from __future__ import annotations

from functools import partial

import click

from adaptor.cli.options import config_option, confirm, duration, json_option, no_such_site
from adaptor.cli.printing import print_json
from adaptor.cli.words import coloured, printable
from adaptor.config.loading import config_path, load_config
from adaptor.config.schema import SiteConfig
from adaptor.protocol.state_directory import state_directory
from backends.findings import Finding
from backends.machines.base import Machine

_COLOURS = {"ok": "done", "warning": "walltime", "error": "failed"}
"""Levels, and the states whose colours they take."""


@click.command()
@click.argument("name", required=False)
@click.option("--live", is_flag=True, help="Run one job of a minute, which tells what a pilot would meet.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before the job is submitted.")
@click.option(
    "--wait",
    type=duration,
    default="10m",
    show_default=True,
    metavar="DURATION",
    help="How long the job may be queued; then it is cancelled.",
)
@config_option
@json_option
def check(name: str | None, live: bool, yes: bool, wait: float, config: str | None, as_json: bool) -> int:
    """Compare sites (default: all) with their live schedulers.

    Submits nothing but with --live, and then one job of one processor for a minute at each site. Exit code
    1: an error was found.

    \b
    Examples:
      adaptor site check --config cluster.yaml
      adaptor site check hpc --live
    """
    whole = load_config(config_path(config))
    sites = whole.sites
    if name is not None and name not in sites:
        raise no_such_site(name, sites)
    chosen = list(sites) if name is None else [name]
    if live and not yes:
        confirm(f"submit one job of a minute to {', '.join(chosen)}?")
    found = {each: findings(sites[each]) for each in chosen}
    if live:
        from adaptor.daemon.trial.check import live_check

        for each, list_ in found.items():
            if not any(finding.level == "error" for finding in list_):
                tell = partial(_tell, each)
                list_ += live_check(each, whole, state_directory(), wait, tell)
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


def _tell(name: str, text: str) -> None:
    click.echo(f"{name}: {text}", err=True)


def findings(site: SiteConfig) -> list[Finding]:
    """What is right, what is doubtful and what is wrong with a site's configuration."""
    from adaptor.config.partitions import sites_of
    from adaptor.daemon.remote.check import check_where_it_is
    from adaptor.daemon.spool import check_spool
    from backends.registry import backend_type

    kind = backend_type(site.backend)

    def check(site: SiteConfig, machine: Machine) -> list[Finding]:
        """Of each partition; what is the same everywhere is told once."""
        found: dict[Finding, list[str]] = {}
        each = sites_of(site)
        for partition, alone in each.items():
            for finding in kind.check_site(alone, machine):
                found.setdefault(finding, []).append(partition)
        return [
            finding
            if len(names) == len(each)
            else Finding(finding.level, f"{', '.join(names)}: {finding.text}")
            for finding, names in found.items()
        ]

    return [*check_where_it_is(site, check), *check_spool(site)]
