"""`adaptor daemon install`: have the daemon started again after a crash or a reboot."""

from __future__ import annotations

import time

import click

from adaptor import api
from adaptor.cli.daemon_process import stop_daemon
from adaptor.cli.operating.installing.methods import Crontab, Method, Systemd, cron, scron
from adaptor.cli.operating.installing.service import Service, this_service
from adaptor.cli.options import config_option, confirm
from adaptor.cli.words import printable
from adaptor.client.asking import ask
from adaptor.config.loading import config_path, load_config
from adaptor.errors import AdaptorError, UsageError

_START_TIMEOUT = 60.0
"""Seconds for the daemon to answer."""


@click.command(short_help="Have the daemon started again after a reboot.")
@click.option(
    "--method",
    type=click.Choice(["systemd", "cron", "scrontab"]),
    help="Default: systemd where it runs a user instance, else cron.",
)
@click.option("--scron", "options", multiple=True, metavar="OPTION", help="An option of the job of scrontab.")
@click.option("--remove", is_flag=True, help="Take it back.")
@click.option("--show", is_flag=True, help="Only show what would be done.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@config_option
def install(
    method: str | None, options: tuple[str, ...], remove: bool, show: bool, yes: bool, config: str | None
) -> None:
    """Have the daemon started again after a reboot, and under systemd after a crash.

    Shows all that it writes and runs before it does it.

    \b
    Examples:
      adaptor daemon install --config ~/cluster.yaml
      adaptor daemon install --remove
    """
    path = config_path(config)
    if path is not None:
        load_config(path)  # a mistake in it is better told here than in a log
    service = this_service(str(path.resolve()) if path is not None else None)
    chosen = _chosen(service, method, options, check=not show)
    steps = chosen.remove() if remove else chosen.install()
    for step in steps:
        click.echo(printable_text(step.told))
    if not show:
        if not yes:
            confirm("do this?")
        if isinstance(chosen, Systemd) and not remove:
            stop_daemon(False)  # one that was started by hand; its pilots go on
        for step in steps:
            step.do()
    if remove:
        return
    if not show and isinstance(chosen, Systemd):
        _await_daemon(service.name)
    for remark in chosen.remarks():
        click.echo(remark)


def printable_text(text: str) -> str:
    return "\n".join(printable(line) for line in text.splitlines())


def _chosen(service: Service, method: str | None, options: tuple[str, ...], *, check: bool) -> Method:
    """Raises UsageError: it cannot be used here; AdaptorError: none can."""
    if options and method != "scrontab":
        raise UsageError("--scron is for --method scrontab")
    known: dict[str, Systemd | Crontab] = {
        "systemd": Systemd(service),
        "cron": cron(service),
        "scrontab": scron(service, options),
    }
    if method is not None:
        why = known[method].missing() if check else ""
        if why:
            raise UsageError(f"--method {method}: {why}")
        return known[method]
    reasons = []
    for each in (known["systemd"], known["cron"]):
        why = each.missing()
        if not why:
            return each
        reasons.append(why)
    raise AdaptorError(
        f"neither systemd nor cron can be used here: {'; '.join(reasons)}. Is there Slurm's scrontab? Then: "
        "adaptor daemon install --method scrontab"
    )


def _await_daemon(name: str) -> None:
    until = time.monotonic() + _START_TIMEOUT
    while True:
        try:
            view = ask(api.GetDaemon())
        except AdaptorError as error:
            if time.monotonic() > until:
                raise AdaptorError(
                    f"the daemon does not answer ({error}); see: journalctl --user -u {name}, or daemon.log"
                ) from error
            time.sleep(0.2)
        else:
            click.echo(f"daemon on {view.host} (process {view.pid}) runs under systemd")
            return
