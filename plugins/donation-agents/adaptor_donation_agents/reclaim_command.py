"""`adaptor reclaim`: ends what runs on a donated node, for a local job."""

from __future__ import annotations

import click

from adaptor.cli.options import config_option, duration
from adaptor.defaults import RUNTIME_DIRECTORY
from adaptor.errors import AdaptorError
from adaptor_donation_agents import reclaim as agent


@click.command()
@click.argument("node")
@click.option("--job", metavar="ID", default="", help="The local job that needs the node, until --offer.")
@click.option(
    "--offer",
    is_flag=True,
    help="The job (without --job: every job) has ended: the node may be donated again.",
)
@click.option(
    "--timeout", type=duration, metavar="DURATION", help="Give up after this (default: reclaim_timeout)."
)
@click.option(
    "--runtime", metavar="FOLDER", help="The node's runtime_directory (default: the configuration's)."
)
@config_option
def reclaim(
    node: str, job: str, offer: bool, timeout: float | None, runtime: str | None, config: str | None
) -> int:
    """Free a donated NODE at once; runs on NODE itself.

    Needs no daemon. The scripts of `adaptor site install-hooks` call it in the scheduler's prolog and epilog.
    The exit code is always 0: a prolog that fails takes the node out of service.

    \b
    Examples:
      adaptor reclaim n17
      adaptor reclaim n17 --offer --job 4711
    """
    places = {runtime: timeout} if runtime is not None else _configured(config)
    for place, usual in places.items():
        seconds = timeout if timeout is not None else usual
        options = [f"--runtime={place}", f"--timeout={agent.TIMEOUT if seconds is None else seconds}"]
        agent.main([*options, f"--job={job}", *(["--offer"] if offer else []), "--", node])
    return 0


def _configured(config: str | None) -> dict[str, float | None]:
    """The runtime folders of the sites that donate nodes in agent mode, with their time limits."""
    from adaptor.config.loading import config_path, load_config

    try:
        sites = load_config(config_path(config)).sites.values()
    except AdaptorError as error:
        click.echo(f"adaptor: {error}; using the default folder", err=True)
        sites = {}.values()
    donations = [site.donation for site in sites if site.donation is not None]
    found: dict[str, float | None] = {
        each.runtime_directory: float(each.reclaim_timeout) for each in donations if each.mode == "agent"
    }
    return found or {RUNTIME_DIRECTORY: None}
