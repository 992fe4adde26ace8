"""`adaptor status`: the bags, the daemon, its pilots and its sites."""

from __future__ import annotations

import time
from contextlib import suppress

import click

from adaptor import api
from adaptor.cli.bags.pilot_table import pilot_lines
from adaptor.cli.daemon_process import config_lines, daemon_lines, version_lines
from adaptor.cli.options import config_option, json_option, pilots_in_system, selector_argument
from adaptor.cli.printing import (
    Columns,
    NumberCell,
    StateWord,
    clock,
    duration,
    pilots_line,
    plural,
    print_figures,
    print_json,
    print_lines,
    printable,
    readable,
    table,
)
from adaptor.cli.sentences import (
    forecast_line,
    held_off_lines,
    open_lines,
    pause_lines,
    pilot_notes,
    waits_lines,
)
from adaptor.client.asking import TAKE_OVER, OtherVersionError, ask
from adaptor.client.reading import Reader
from adaptor.errors import AdaptorError, NoDaemonError, UsageError
from adaptor.protocol.state_directory import state_directory
from adaptor.units import format_size

_SHORTEST = 60.0  # seconds from which on rates are shown


@click.command(short_help="Show bags, pilots, sites or the daemon.")
@selector_argument("[BAGS]", default="recent")
@click.option(
    "--pilots",
    "only_pilots",
    is_flag=True,
    help="List the pilots that are queued or running.",
)
@click.option("--all", "ended", is_flag=True, help="With --pilots: ended ones too, and each of an array.")
@click.option("--sites", "only_sites", is_flag=True, help="List the sites: their limits and requests.")
@click.option("--daemon", "only_daemon", is_flag=True, help="Show the daemon, its journal and its load.")
@config_option
@json_option
def status(
    selector: str,
    only_pilots: bool,
    ended: bool,
    only_sites: bool,
    only_daemon: bool,
    config: str | None,
    as_json: bool,
) -> None:
    """Show bags, the daemon and its pilots (default: unfinished bags and the newest 20).

    \b
    Examples:
      adaptor status all
      adaptor status 1-10
      adaptor status --pilots --all
      adaptor status --sites
    """
    if only_pilots + only_sites + only_daemon > 1:
        raise UsageError("--pilots, --sites and --daemon exclude each other")
    if ended and not only_pilots:
        raise UsageError("--all: with --pilots only; all bags: adaptor status all")
    if only_pilots:
        _print_pilots(as_json, ended=ended)
    elif only_sites:
        _print_sites(config, as_json)
    elif only_daemon:
        _print_daemon(as_json)
    else:
        _print_all(selector, as_json)


def _print_all(selector: str, as_json: bool) -> None:
    """The bags, the daemon and a line on its pilots."""
    reader = Reader(time.time)
    try:
        found = reader.get(api.GetBags(selector, record=as_json))
    except OtherVersionError:
        if not as_json:
            print_lines(daemon_lines(ask(api.GetDaemon())))
        raise
    bags = found.bags
    pilots = pilots_in_system(reader.get)
    daemon = None if reader.offline else ask(api.GetDaemon())
    if as_json:
        told = {"bags": bags, "forecast_record": found.record, "daemon": daemon, "pilots": pilots}
        print_json(told)
        return
    _print_bags(bags)
    if selector == "recent" and found.others:
        click.echo(f"{plural(found.others, 'earlier bag')}: adaptor status all")
    if daemon is not None:
        where = f"daemon on {daemon.host} (process {daemon.pid}) since {clock(daemon.started)}"
        print_lines([f"{where}; {pilots_line(pilots, bags=bags)}"])
        if daemon.stalled:
            click.echo(f"daemon stalled: {printable(daemon.stalled)}")
        print_lines(config_lines(daemon, only_problems=True))
    print_lines(pilot_notes(pilots))


def _print_pilots(as_json: bool, *, ended: bool) -> None:
    pilots = Reader(time.time).get(api.GetPilots(ended))
    if as_json:
        print_json(pilots)
        return
    print_lines(pilot_lines(pilots, each=ended))
    if not pilots:
        click.echo("no pilots" if ended else "no pilots queued or running; --all shows ended ones")


def _print_sites(config: str | None, as_json: bool) -> None:
    """Print the sites; without a daemon, those of the configuration."""
    from adaptor.cli.bags.site_lines import configured_sites, site_lines  # loads the configuration's schema

    try:
        sites = ask(api.GetSites())
    except NoDaemonError:
        click.echo("adaptor: no daemon is running; reading the configuration", err=True)
        sites = configured_sites(config)
    if as_json:
        print_json(sites)
    else:
        print_lines(site_lines(sites))


def _print_daemon(as_json: bool) -> None:
    """Print the state of the daemon. Raises NoDaemonError: no daemon runs."""
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
    print_lines([*config_lines(view), *_job_lines()])
    if view.stalled:
        click.echo(f"stalled: {printable(view.stalled)}")


def _job_lines() -> list[str]:
    """Lines on the job that runs the daemon, and the job that follows; empty: it runs as no job."""
    from adaptor.daemon.jobs.record import following, read_jobs

    with suppress(AdaptorError):
        if (jobs := read_jobs(state_directory())) is not None and jobs.current:
            until = f" until {clock(jobs.until)}" if jobs.until else ""
            return [
                f"runs as job {jobs.current_job or jobs.current} at {jobs.site}{until}; {following(jobs)}"
            ]
    return []


def _upkeep_lines(upkeep: api.UpkeepView) -> list[str]:
    journal, rates = upkeep.journal, upkeep.rates
    since = f" since {clock(journal.oldest)}" if journal.oldest is not None else ""
    kept = "kept until `adaptor forget`" if journal.keep is None else f"kept for {duration(journal.keep)}"
    compacting = "; forgotten ones are being removed" if journal.compacting else ""
    lines = [
        f"reached at {', '.join(upkeep.addresses)}",
        f"journal: {format_size(journal.size)}, {plural(journal.bags, 'bag')}{since}, {kept}{compacting}",
        f"memory: {format_size(rates.memory)}",
    ]
    if rates.seconds >= _SHORTEST:
        growth = f"{'-' if rates.journal_growth < 0 else '+'}{format_size(abs(rates.journal_growth))}"
        lines.append(
            f"in the last {duration(rates.seconds)}: {plural(rates.results, 'result')}, journal {growth}, "
            f"{plural(rates.scheduler_commands, 'scheduler command')}, {rates.cpu:.1f} CPU seconds"
        )
    return lines


def _print_bags(bags: list[api.BagView]) -> None:
    if not bags:
        click.echo("no bags; submit one: adaptor submit FILE")
        return
    blocked = any(bag.blocked for bag in bags)
    print_lines(
        table(bags, {name: column for name, column in _COLUMNS.items() if blocked or name != "blocked"})
    )
    for bag in bags:
        if bag.forecast is not None and not bag.paused:
            print_lines([f"bag {bag.id}: {forecast_line(bag.forecast)}"])
        print_lines([*waits_lines(bag), *open_lines(bag)])
    print_lines([*pause_lines(bags), *held_off_lines(bags)])


def _state(bag: api.BagView) -> str:
    if bag.paused:
        return "paused"
    return "waiting" if bag.state == "running" and not bag.running else bag.state


_COLUMNS: Columns = {
    "bag": "id",
    "name": lambda bag: printable(bag.name, 24),
    "state": lambda bag: StateWord(_state(bag)),
    "done": lambda bag: NumberCell(f"{bag.done}/{bag.tasks}"),
    "running": "running",
    "waiting": "waiting",
    "blocked": "blocked",
    "failed": "failed",
    "cancelled": "cancelled",
    "mean": "mean_runtime",
    "submitted": "submitted",
    "took": lambda bag: NumberCell(duration(None if bag.ended is None else bag.ended - bag.submitted)),
    "sites": lambda bag: ",".join(bag.sites) or "any",
}
