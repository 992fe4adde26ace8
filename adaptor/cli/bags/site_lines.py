"""The sites in `adaptor status --sites`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adaptor import api
from adaptor.cli.printing import Columns, NumberCell, StateWord, cells, clock, layout, printable
from adaptor.cli.sentences import donation_lines
from adaptor.config.loading import config_path, load_config
from adaptor.config.policy import policy_of
from adaptor.config.schema import SiteConfig, sites_of
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.units import format_duration


def configured_sites(config: str | None) -> list[api.SiteView]:
    """Values that only the scheduler knows are None. Raises ConfigError: the configuration is at fault."""
    return [
        api.SiteView(
            name=name,
            backend=site.backend,
            heuristic=site.heuristic,
            max_in_system=_configured(site),
            max_proc=site.limits.max_proc,
            max_tr=site.limits.max_tr,
            pad=float(site.pad),
            queued=0,
            running=0,
            processors=site.processors,
            observed=None,
            problem="",
            partitions=[
                api.PartitionView(
                    name=partition,
                    max_in_system=_configured(alone),
                    max_proc=alone.limits.max_proc,
                    max_tr=alone.limits.max_tr,
                )
                for partition, alone in sites_of(site).items()
                if partition
            ],
            policy=policy_of(site).words(),
        )
        for name, site in load_config(config_path(config)).sites.items()
    ]


def _configured(site: SiteConfig) -> int | None:
    """Own pilots in the system, as far as the configuration says."""
    narrow = HEURISTICS[site.heuristic].narrow
    return (site.limits.max_pilots if narrow else None) or site.limits.max_pending_requests


def site_lines(sites: Sequence[api.SiteView]) -> Iterator[str]:
    """A title and a line for each site; below it what not every site has."""
    rows = [cells(site, _COLUMNS) for site in sites]
    places = [
        [f"{site.name}/{partition.name}", *cells(partition, _COLUMNS)[1:]]
        for site in sites
        for partition in site.partitions
    ]
    title, *lines = layout(list(_COLUMNS), [*rows, *places])
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
        if site.gpus:
            yield f"  gpus: {', '.join(f'{each.total} {each.type}'.strip() for each in site.gpus)}"
        if site.policy:
            yield f"  the operator allows: {printable(site.policy)}"
        if site.late is not None and site.late >= _LATE:
            yield f"  requests start {format_duration(site.late)} later than predicted"
        if site.donation is not None:
            yield from (f"  {words}" for words in donation_lines(site.donation))


_LATE = 60.0  # seconds by which requests start late, from which on it is said
_Place = api.SiteView | api.PartitionView


def _state(site: _Place) -> StateWord:
    if isinstance(site, api.PartitionView):
        return StateWord("closed" if site.closed else "")
    if site.problem:
        return StateWord("silent")
    return StateWord("not asked" if site.observed is None else "answers")


def _requests(site: _Place) -> str:
    """Queued and running requests, of the most: `1+2 of 4`."""
    most = site.max_in_system
    return NumberCell(f"{site.queued}+{site.running}{'' if most is None else f' of {most}'}")


def _processors(site: _Place) -> str:
    """`12 of 128`: held by own requests, and in service."""
    return NumberCell(f"{site.held}{'' if site.processors is None else f' of {site.processors}'}")


_COLUMNS: Columns = {
    "site": "name",
    "backend": "backend",
    "queued+running": _requests,
    "processors": _processors,
    "max_proc": "max_proc",
    "max_tr": "max_tr",
    "state": _state,
}
