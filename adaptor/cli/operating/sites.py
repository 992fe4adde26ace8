"""`adaptor site`: its commands, and of these init and check; the group `adaptor.cli.site` adds more."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from adaptor.cli.command_groups import LazyGroup, show_help
from adaptor.cli.options import config_option, confirm, duration, json_option, no_such_site
from adaptor.cli.printing import coloured, print_json, printable, writing
from adaptor.config.loading import config_path, configured_place, files_of, load_config, parse_config
from adaptor.config.policy import policy_of
from adaptor.config.schema import SiteConfig
from adaptor.errors import UsageError
from adaptor.plugins import AGENTS
from adaptor.protocol.state_directory import state_directory
from backends.findings import Finding
from backends.machines.base import Machine

COMMANDS = {
    "slots": "adaptor.cli.operating.site_slots:slots",
    "init": "adaptor.cli.operating.sites:init",
    "check": "adaptor.cli.operating.sites:check",
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


@click.command()
@click.option("-o", "--output", metavar="FILE", help="The file to write; - is stdout (default: --config).")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@config_option
@json_option
def init(output: str | None, force: bool, config: str | None, as_json: bool) -> None:
    """Write a configuration for the cluster of this machine.

    Reads partitions (or queues), their limits and node sizes from Slurm or PBS; if none answers, this
    machine becomes a local site. Writes to --output, else --config, $ADAPTOR_CONFIG or
    ~/.config/adaptor/config.yaml.

    \b
    Example:
      adaptor site init && adaptor site check
    """
    from backends.registry import described_here

    text = described_here(lambda told: click.echo(f"adaptor: {told}", err=True))
    if output == "-":
        click.echo(text, nl=False)
        return
    path = Path(output).expanduser() if output else configured_place(config)[0]
    path = path.absolute()
    operators = files_of(path)[:-1]
    if operators and not force:
        raise UsageError(
            f"{operators[0]} has the sites of this machine for all users, so you need no file of your own "
            "(adaptor site check shows them); --force writes one that adds to them"
        )
    sites = list(parse_config(text, str(path)).sites)
    if path.exists() and not force:
        raise UsageError(f"{path}: exists already; --force overwrites it, --output writes elsewhere")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"file": str(path), "sites": sites})
    else:
        click.echo(f"{path}: {', '.join(sites)} (compare it with the cluster: adaptor site check)")


_COLOURS = {"ok": "done", "warning": "walltime", "error": "failed"}
"""Levels, and the states whose colours they take."""


@click.command()
@click.argument("name", required=False)
@click.option("--live", is_flag=True, help="Run a small bag in one short job, to see what a pilot finds.")
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

    Without a NAME, also tests the file system of the state directory. Submits nothing; only --live submits
    one job of at most four processors and two minutes at each site. Exit code 1: an error was found.

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
        confirm(f"submit one short job to {', '.join(chosen)}?")
    from adaptor.cli.checking.folder import check_folder

    found = {each: findings(sites[each]) for each in chosen}
    if live:
        from adaptor.cli.checking.live import live_check

        for each, list_ in found.items():
            if not any(finding.level == "error" for finding in list_):
                tell = partial(_tell, each)
                list_ += live_check(each, whole, state_directory(), wait, tell)
    if name is None:
        found = {"state directory": check_folder(state_directory()), **found}
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
    """Findings about a site's configuration: right, doubtful or wrong."""
    from adaptor.config.schema import sites_of
    from adaptor.daemon.remote.check import check_where_it_is
    from adaptor.daemon.spool import check_spool
    from backends.findings import check_prices, ok
    from backends.registry import backend_type

    kind = backend_type(site.backend)

    def check(site: SiteConfig, machine: Machine) -> list[Finding]:
        """Findings on each partition; a finding that is the same everywhere is shown once."""
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

    policy = policy_of(site)
    allowed = [ok(f"the operator allows {policy.words()} ({policy.path})")] if policy.path else []
    return [*allowed, *check_where_it_is(site, check), *check_spool(site), *check_prices(site)]
