"""`adaptor daemon`: run, start, stop, restart, submit, install."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from adaptor import api
from adaptor.cli import daemon_process
from adaptor.cli.command_groups import LazyGroup, show_help
from adaptor.cli.operating.daemon_install import restart_service
from adaptor.cli.options import config_option, json_option
from adaptor.cli.printing import print_json, print_lines, printable
from adaptor.client.asking import ask, check_own_key
from adaptor.errors import UsageError, VanishedSitesError
from adaptor.protocol.state_directory import state_directory

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
    "submit": "adaptor.cli.operating.daemon_submit:submit",
    "install": "adaptor.cli.operating.daemon_install:install",
    "run": "adaptor.cli.operating.daemon:run",
}


@click.group(
    cls=LazyGroup,
    sections={"Commands": COMMANDS},
    invoke_without_command=True,
    short_help="Start, stop and restart the program in the background.",
)
@click.pass_context
def daemon(ctx: click.Context) -> None:
    """Start, stop and restart the program in the background that submits jobs."""
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
    from adaptor.daemon.jobs.record import check_no_job

    check_own_key("start a daemon")
    check_no_job(state_directory(), "start one here")
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
        lambda drop: daemon_process.ensure_daemon(config, until_idle, drop_sites=drop), drop_sites, as_json
    )
    _print_running("started" if started else "already running", {"started": started}, as_json)


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
    pid, jobs = daemon_process.stop_for_good(pilots=pilots, force=force)
    if as_json:
        print_json({"stopped": pid, "jobs": jobs})
        return
    click.echo("no daemon was running" if pid is None else f"stopped: process {pid}")
    if jobs:
        click.echo(f"cancelled: {', '.join(f'job {job}' for job in jobs)}, which ran the daemon or waited to")


@click.command(short_help="Take over an edited configuration or a new version.")
@config_option
@drop_sites_option
@json_option
def restart(config: str | None, drop_sites: bool, as_json: bool) -> None:
    """Have the daemon take over an edited configuration or this version; pilots and their tasks continue.

    If only the configuration's file was edited, the process stays. A configuration that cannot be used
    changes nothing: the command names the line. --config names another configuration.

    \b
    Example:
      adaptor daemon restart
    """
    if not drop_sites and (changes := daemon_process.reload_daemon(config)) is not None:
        parts = ((words, getattr(changes, key)) for key, words in _CHANGES.items())
        told = [f"{words} {', '.join(names)}" for words, names in parts if names]
        done, restarted = f"configuration taken over ({'; '.join(told) or 'nothing has changed'})", True
    else:
        daemon_process.check_restart()
        restarted = restart_service(config is not None or drop_sites) or _asking_about_sites(
            lambda drop: daemon_process.restart_daemon(config, drop_sites=drop), drop_sites, as_json
        )
        done, changes = "restarted" if restarted else "started", None
    _print_running(done, {"restarted": restarted, "changes": changes}, as_json)


_CHANGES = {"added": "added", "removed": "removed", "changed": "changed", "others": "changed too:"}


def _asking_about_sites(start: Callable[[bool], bool], drop_sites: bool, as_json: bool) -> bool:
    """The result of `start`, which may drop sites; on a terminal the user is asked first."""
    try:
        return start(drop_sites)
    except VanishedSitesError as gone:
        if as_json or not _is_terminal():
            raise
        click.confirm(f"{printable(str(gone))}\ngo on without it now?", abort=True, err=True)
        return start(True)


def _print_running(done: str, outcome: dict[str, object], as_json: bool) -> None:
    """Print what was done, and the daemon that runs now."""
    view = ask(api.GetDaemon())
    if as_json:
        print_json({**outcome, "daemon": view})
    else:
        click.echo(f"{done}: daemon on {view.host} (process {view.pid})")
        print_lines([*daemon_process.version_lines(view), *daemon_process.config_lines(view)])


def _is_terminal() -> bool:
    return sys.stdin.isatty()
