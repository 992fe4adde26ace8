"""`adaptor daemon`: run, start, stop, restart, reload, status, install."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

import click

from adaptor import api
from adaptor.cli.command_groups import LazyGroup, show_help
from adaptor.cli.daemon_process import (
    config_lines,
    daemon_lines,
    end_daemon,
    ensure_daemon,
    reload_daemon,
    restart_daemon,
    stop_daemon,
    version_lines,
)
from adaptor.cli.operating.daemon_install import restart_service
from adaptor.cli.options import config_option, json_option
from adaptor.cli.printing import (
    clock,
    duration,
    plural,
    print_figures,
    print_json,
    print_lines,
    printable,
    readable,
)
from adaptor.client.asking import TAKE_OVER, OtherVersionError, ask
from adaptor.errors import UsageError, VanishedSitesError
from adaptor.protocol.state_directory import state_directory
from adaptor.units import format_size

_SHORTEST = 60.0
"""Seconds over which rates say something."""

drop_sites_option = click.option(
    "--drop-sites",
    is_flag=True,
    help="Go on without sites that left the configuration, though pilots or bags depend on them.",
)
until_idle_option = click.option("--until-idle", is_flag=True, hidden=True)


COMMANDS = {
    "start": "adaptor.cli.operating.daemon:start",
    "stop": "adaptor.cli.operating.daemon:stop",
    "restart": "adaptor.cli.operating.daemon:restart",
    "reload": "adaptor.cli.operating.daemon:reload",
    "status": "adaptor.cli.operating.daemon:status",
    "install": "adaptor.cli.operating.daemon_install:install",
    "run": "adaptor.cli.operating.daemon:run",
}


@click.group(
    cls=LazyGroup,
    sections={"Commands": COMMANDS},
    invoke_without_command=True,
    short_help="Start, stop and show the program in the background.",
)
@click.pass_context
def daemon(ctx: click.Context) -> None:
    """Start, stop and show the program in the background that submits jobs."""
    show_help(ctx)


@click.command(hidden=True)
@config_option
@until_idle_option
@drop_sites_option
def run(config: str | None, until_idle: bool, drop_sites: bool) -> int:
    """Run the daemon in the foreground, as the service of `adaptor daemon install` does.

    \b
    Example:
      adaptor daemon run --config cluster.yaml
    """
    from adaptor.daemon import process

    return process.run(state_directory(), config, until_idle, drop_sites=drop_sites)


@click.command()
@config_option
@until_idle_option
@drop_sites_option
@json_option
def start(config: str | None, until_idle: bool, drop_sites: bool, as_json: bool) -> None:
    """Start the daemon; it outlives this login session.

    It asks before it goes on without a site on which pilots or bags depend.

    \b
    Example:
      adaptor daemon start --config cluster.yaml
    """
    started = _asking_about_sites(
        lambda drop: ensure_daemon(config, until_idle, drop_sites=drop), drop_sites, as_json
    )
    _print_running("started" if started else "already running", "started", started, as_json)


@click.command()
@click.option(
    "--pilots",
    is_flag=True,
    help="Cancel its pilots too; otherwise they continue, and the next daemon finds them.",
)
@click.option(
    "--force",
    is_flag=True,
    help="End one that does not answer: SIGTERM, then SIGKILL. Nothing is lost; its pilots continue.",
)
@json_option
def stop(pilots: bool, force: bool, as_json: bool) -> None:
    """Stop the daemon; its bags continue when it starts again.

    \b
    Examples:
      adaptor daemon stop --pilots
      adaptor daemon stop --force
    """
    if force and pilots:
        raise UsageError(
            "--force ends a daemon that cannot be asked to cancel its pilots; start one again, then:"
            " adaptor daemon stop --pilots"
        )
    pid = end_daemon(force=True) if force else stop_daemon(pilots)
    if as_json:
        print_json({"stopped": pid})
    else:
        click.echo("no daemon was running" if pid is None else f"stopped: process {pid}")


@click.command(short_help="Stop the daemon and start one of this version.")
@config_option
@drop_sites_option
@json_option
def restart(config: str | None, drop_sites: bool, as_json: bool) -> None:
    """Stop the daemon, of whatever version, and start one of this version; pilots and their tasks continue.

    It keeps the configuration of the last one, unless --config names another.

    \b
    Example:
      adaptor daemon restart
    """
    restarted = restart_service(config is not None or drop_sites) or _asking_about_sites(
        lambda drop: restart_daemon(config, drop_sites=drop), drop_sites, as_json
    )
    _print_running("restarted" if restarted else "started", "restarted", restarted, as_json)


def _asking_about_sites(start: Callable[[bool], bool], drop_sites: bool, as_json: bool) -> bool:
    """What `start` returns, which may drop sites; on a terminal the user may say so after all."""
    try:
        return start(drop_sites)
    except VanishedSitesError as gone:
        if as_json or not _is_terminal():
            raise
        click.confirm(f"{printable(str(gone))}\ngo on without it now?", abort=True, err=True)
        return start(True)


def _print_running(told: str, key: str, value: bool, as_json: bool) -> None:
    """The daemon that runs now, after what was done."""
    view = ask(api.GetDaemon())
    if as_json:
        print_json({key: value, "daemon": view})
    else:
        click.echo(f"{told}: {_where(view)}")
        print_lines([*version_lines(view), *config_lines(view)])


@click.command(short_help="Show the daemon's process, journal and sites.")
@json_option
def status(as_json: bool) -> None:
    """Show the daemon's process, folder, addresses, its journal and what it takes of this machine.

    \b
    Example:
      adaptor daemon status --json
    """
    view, upkeep = ask(api.GetDaemon()), None
    with suppress(OtherVersionError):
        upkeep = ask(api.GetUpkeep())
    if as_json:
        nothing = dict.fromkeys(api.UpkeepView.__struct_fields__)
        print_figures({**readable(view), **(readable(upkeep) or nothing)})
        return
    print_lines(daemon_lines(view))
    if upkeep is None:
        click.echo(TAKE_OVER)
    else:
        print_lines([*_upkeep_lines(upkeep), *version_lines(view)])
    print_lines(config_lines(view))
    if view.stalled:
        click.echo(f"stalled: {printable(view.stalled)}")


def _upkeep_lines(upkeep: api.UpkeepView) -> list[str]:
    journal = upkeep.journal
    since = f" since {clock(journal.oldest)}" if journal.oldest is not None else ""
    kept = "kept until `adaptor forget`" if journal.keep is None else f"kept for {duration(journal.keep)}"
    compacting = "; forgotten ones are being removed" if journal.compacting else ""
    bags = plural(journal.bags, "bag")
    return [
        f"reached at {', '.join(upkeep.addresses)}",
        f"journal: {format_size(journal.size)}, {bags}{since}, {kept}{compacting}",
        *_rate_lines(upkeep.rates),
    ]


@click.command(short_help="Take over the configuration as its file is now.")
@json_option
def reload(as_json: bool) -> None:
    """Take over the configuration as its file is now, without losing a pilot.

    It is checked first; where it cannot be used, the line is named and the old one goes on.

    \b
    Example:
      adaptor daemon reload
    """
    found = reload_daemon()
    if as_json:
        print_json({"file": found.file, **{word: getattr(found, word) for word in _CHANGES}})
        return
    told = [f"{_CHANGES[word]} {', '.join(names)}" for word in _CHANGES if (names := getattr(found, word))]
    click.echo(f"{found.file or 'no configuration'}: {'; '.join(told) or 'nothing has changed'}")


_CHANGES = {"added": "added", "removed": "removed", "changed": "changed", "others": "changed too:"}


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _rate_lines(rates: api.RatesView) -> list[str]:
    """Nothing is shown of the first minute."""
    memory = f"memory: {format_size(rates.memory)}"
    if rates.seconds < _SHORTEST:
        return [memory]
    growth = f"{'-' if rates.journal_growth < 0 else '+'}{format_size(abs(rates.journal_growth))}"
    return [
        memory,
        f"in the last {duration(rates.seconds)}: {plural(rates.results, 'result')}, journal {growth}, "
        f"{plural(rates.scheduler_commands, 'scheduler command')}, {rates.cpu:.1f} CPU seconds",
    ]


def _where(view: api.DaemonView) -> str:
    return f"daemon on {view.host} (process {view.pid})"
