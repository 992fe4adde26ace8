"""Sites in a table, and as the configuration alone describes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adaptor import views
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


def configured_sites(config: str | None) -> list[views.SiteView]:
    """Values that only the scheduler knows are None.

    Raises:
        ConfigError: the configuration is at fault.
    """
    from adaptor.config.loading import config_path, load_config

    return [
        views.SiteView(
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
        )
        for name, site in load_config(config_path(config)).sites.items()
    ]


def site_lines(sites: Sequence[views.SiteView]) -> Iterator[str]:
    """A title and a line for each site, with its problem and its donated nodes below."""
    table = layout(_TITLES, [_row(site) for site in sites])
    yield next(table)
    for site, line in zip(sites, table, strict=True):
        yield line
        if site.problem:
            since = f" (since {clock(site.since)})" if site.since is not None else ""
            yield f"  problem{since}: {printable(site.problem)}"
        if site.donation is not None:
            yield from (f"  {words}" for words in donation_lines(site.donation))


def _row(site: views.SiteView) -> tuple[str, ...]:
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
        duration(site.late),
        clock(site.observed),
        _state(site),
    )


def _state(site: views.SiteView) -> str:
    if site.problem:
        return "silent"
    return "not asked" if site.observed is None else "answers"


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)
