"""`adaptor site list`: sites in a table, and as the configuration alone describes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from adaptor import api
from adaptor.cli.json_output import print_json
from adaptor.cli.options import config_option, json_option
from adaptor.cli.sentences import donation_lines
from adaptor.cli.table import Columns, cells, layout
from adaptor.cli.words import clock, printable
from adaptor.client.asking import ask
from adaptor.errors import NoDaemonError


def configured_sites(config: str | None) -> list[api.SiteView]:
    """Values that only the scheduler knows are None.

    Raises:
        ConfigError: the configuration is at fault.
    """
    from adaptor.config.loading import config_path, load_config
    from adaptor.config.partitions import sites_of

    return [
        api.SiteView(
            name=name,
            backend=site.backend,
            heuristic=site.heuristic,
            max_pending_requests=site.limits.max_pending_requests,
            max_proc=site.limits.max_proc,
            max_tr=site.limits.max_tr,
            queued=0,
            running=0,
            processors=site.processors,
            observed=None,
            problem="",
            partitions=[
                api.PartitionView(
                    name=partition,
                    max_pending_requests=alone.limits.max_pending_requests,
                    max_proc=alone.limits.max_proc,
                    max_tr=alone.limits.max_tr,
                )
                for partition, alone in sites_of(site).items()
                if partition
            ],
        )
        for name, site in load_config(config_path(config)).sites.items()
    ]


def site_lines(sites: Sequence[api.SiteView]) -> Iterator[str]:
    """A title and a line for each site, with its problem and its donated nodes below."""
    columns = dict(_COLUMNS)
    if not any(site.gpus for site in sites):
        del columns["gpus"]
    rows = [cells(site, columns) for site in sites]
    places = [
        [f"{site.name}/{partition.name}", *cells(partition, columns)[1:]]
        for site in sites
        for partition in site.partitions
    ]
    title, *lines = layout(list(columns), [*rows, *places])
    own = iter(lines[len(rows) :])
    yield title
    for site, line in zip(sites, lines, strict=False):
        yield line
        for each in site.partitions:
            yield next(own)
            if each.closed:
                yield f"  closed: {printable(each.closed)}"
        if site.problem:
            since = f" (since {clock(site.since)})" if site.since is not None else ""
            yield f"  problem{since}: {printable(site.problem)}"
        if site.donation is not None:
            yield from (f"  {words}" for words in donation_lines(site.donation))


def _gpu_words(site: api.SiteView | api.PartitionView) -> str:
    """`4 a100, 2`: of a type, and without one."""
    if isinstance(site, api.PartitionView):
        return ""
    return ", ".join(f"{each.total} {each.type}".strip() for each in site.gpus) or "-"


def _state(site: api.SiteView | api.PartitionView) -> str:
    if isinstance(site, api.PartitionView):
        return "closed" if site.closed else ""
    if site.problem:
        return "silent"
    return "not asked" if site.observed is None else "answers"


_COLUMNS: Columns = {
    "site": "name",
    "backend": "backend",
    "heuristic": "heuristic",
    "max_pending_requests": "max_pending_requests",
    "max_proc": "max_proc",
    "max_tr": "max_tr",
    "queued": "queued",
    "running": "running",
    "held": "held",
    "processors": "processors",
    "gpus": _gpu_words,
    "late": "late",
    "observed": "observed",
    "state": _state,
}
"""`held`: processors of own requests that run; `late`: by how much requests start later than predicted."""


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
