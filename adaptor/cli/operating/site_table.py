"""Sites in a table, and as the configuration alone describes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adaptor import api
from adaptor.cli.donation_words import donation_lines
from adaptor.cli.table import layout
from adaptor.cli.words import clock, duration, printable

_TITLES: tuple[str, ...] = (
    "site",
    "backend",
    "heuristic",
    "max_pending_requests",
    "max_proc",
    "max_tr",
    "queued",
    "running",
)
_TITLES += ("held", "processors", "late", "observed", "state")
"""`held`: processors of own requests that run; `late`: by how much requests start later than predicted."""
_GPUS = _TITLES.index("processors") + 1
"""Where `gpus` stands if a site has any."""


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
    gpus = any(site.gpus for site in sites)
    titles = _TITLES if not gpus else (*_TITLES[:_GPUS], "gpus", *_TITLES[_GPUS:])
    rows = [_row(site, gpus=gpus) for site in sites]
    places = [_partition_row(site, each, gpus=gpus) for site in sites for each in site.partitions]
    title, *lines = layout(titles, [*rows, *places])
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


def _row(site: api.SiteView, *, gpus: bool) -> tuple[str, ...]:
    return (
        site.name,
        site.backend,
        site.heuristic,
        _number(site.max_pending_requests),
        _number(site.max_proc),
        duration(site.max_tr),
        str(site.queued),
        str(site.running),
        str(site.held),
        _number(site.processors),
        *([_gpu_words(site)] if gpus else []),
        duration(site.late),
        clock(site.observed),
        _state(site),
    )


def _partition_row(site: api.SiteView, each: api.PartitionView, *, gpus: bool) -> tuple[str, ...]:
    return (
        f"{site.name}/{each.name}",
        "",
        "",
        _number(each.max_pending_requests),
        _number(each.max_proc),
        duration(each.max_tr),
        str(each.queued),
        str(each.running),
        str(each.held),
        _number(each.processors),
        *([""] if gpus else []),
        "",
        "",
        "closed" if each.closed else "",
    )


def _gpu_words(site: api.SiteView) -> str:
    """`4 a100, 2`: of a type, and without one."""
    return ", ".join(f"{each.total} {each.type}".strip() for each in site.gpus) or "-"


def _state(site: api.SiteView) -> str:
    if site.problem:
        return "silent"
    return "not asked" if site.observed is None else "answers"


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)
