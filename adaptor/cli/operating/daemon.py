"""`adaptor daemon`: run, start, stop, status."""

from __future__ import annotations

import click

from adaptor import views
from adaptor.cli.client import ask
from adaptor.cli.command_groups import show_help
from adaptor.cli.daemon_process import ensure_daemon, stop_daemon
from adaptor.cli.json_output import print_json
from adaptor.cli.operating.forced_stop import end_daemon
from adaptor.cli.options import config_option, json_option
from adaptor.cli.words import clock, plural, printable
from adaptor.errors import UsageError
from adaptor.protocol import control
from adaptor.protocol.state_directory import state_directory

until_idle_option = click.option("--until-idle", is_flag=True, help="End when all bags have ended.")


@click.group(invoke_without_command=True)
@click.pass_context
def daemon(ctx: click.Context) -> None:
    """Start, stop and show the daemon that crafts requests."""
    show_help(ctx)


@daemon.command()
@config_option
@until_idle_option
def run(config: str | None, until_idle: bool) -> int:
    """Run the daemon in the foreground, for instance under systemd.

    \b
    Example:
      systemd-run --user --unit adaptor adaptor daemon run
    """
    from adaptor.daemon import process

    return process.run(state_directory(), config, until_idle=until_idle)


@daemon.command()
@config_option
@until_idle_option
@json_option
def start(config: str | None, until_idle: bool, as_json: bool) -> None:
    """Start the daemon; it outlives this login session.

    \b
    Example:
      adaptor daemon start --config cluster.yaml
    """
    started = ensure_daemon(config, until_idle)
    view = ask(control.GetDaemon(), control.Daemon).daemon
    if as_json:
        print_json({"started": started, "daemon": view})
    else:
        click.echo(f"{'started' if started else 'already running'}: {_where(view)}")


@daemon.command()
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
    pid = _stop(pilots, force)
    if as_json:
        print_json({"stopped": pid})
    else:
        click.echo("no daemon was running" if pid is None else f"stopped: process {pid}")


def _stop(pilots: bool, force: bool) -> int | None:
    """The process that has ended; None: there was none."""
    if not force:
        return stop_daemon(pilots)
    if pilots:
        raise UsageError(
            "--force ends a daemon that cannot be asked to cancel its pilots; start one again, then:"
            " adaptor daemon stop --pilots"
        )
    return end_daemon()


@daemon.command()
@json_option
def status(as_json: bool) -> None:
    """Show the daemon's process, folder and addresses.

    \b
    Example:
      adaptor daemon status --json
    """
    view = ask(control.GetDaemon(), control.Daemon).daemon
    if as_json:
        print_json(view)
        return
    click.echo(f"{_where(view)}, version {view.version}, {plural(view.workers, 'worker')}")
    click.echo(f"since {clock(view.started)}, state in {printable(view.state_directory)}")
    click.echo(f"reached at {', '.join(view.addresses)}")
    if view.stalled:
        click.echo(f"stalled: {printable(view.stalled)}")


def _where(view: views.DaemonView) -> str:
    return f"daemon on {view.host} (process {view.pid})"
