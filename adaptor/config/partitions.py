"""The partitions of a site, among which each request chooses: as sites of one partition, and their checks."""

from __future__ import annotations

import re

import msgspec

from adaptor.config.schema import LimitsConfig, PartitionConfig, SiteConfig
from adaptor.config.yaml_lines import Fail


def sites_of(site: SiteConfig) -> dict[str, SiteConfig]:
    """By partition, the site as if it had no other; by the empty name, a site without `partitions` itself."""
    if not site.partitions:
        return {"": site}
    return {name: _alone(site, name, each) for name, each in site.partitions.items()}


def _alone(site: SiteConfig, name: str, entry: PartitionConfig) -> SiteConfig:
    return msgspec.structs.replace(
        site,
        partition=entry.partition or name,
        account=entry.account or site.account,
        qos=entry.qos or site.qos,
        limits=LimitsConfig(
            max_pending_requests=entry.limits.max_pending_requests or site.limits.max_pending_requests,
            max_proc=entry.limits.max_proc or site.limits.max_proc,
            max_tr=entry.limits.max_tr or site.limits.max_tr,
        ),
        partitions={},
    )


def check_partitions(site: SiteConfig, allowed: bool, at: str, fail: Fail) -> None:
    """`allowed`: whether sites of this backend may have partitions. Calls `fail` for what is wrong."""
    if not site.partitions:
        return
    if not allowed:
        fail(f"{at}.partitions", f"backend {site.backend} has no partitions")
    if site.partition is not None:
        fail(f"{at}.partition", "stands beside `partitions`; name it as one of these")
    places: dict[tuple[str | None, ...], str] = {}
    for name, alone in sites_of(site).items():
        here = f"{at}.partitions.{name}"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            fail(here, "the name consists of letters, digits, '-', '_' and '.'; write others as `partition`")
        place = (alone.partition, alone.account, alone.qos)
        if place in places:
            fail(here, f"is the same partition, account and QOS as {places[place]}")
        places[place] = name
        _check_limits(site, site.partitions[name].limits, f"{here}.limits", fail)


def _check_limits(site: SiteConfig, own: LimitsConfig, at: str, fail: Fail) -> None:
    most = site.limits.max_pending_requests
    if own.max_pending_requests and most and own.max_pending_requests > most:
        fail(
            f"{at}.max_pending_requests",
            f"{own.max_pending_requests} is more than all partitions of the site have together: {most}",
        )
    check_time(own, site.pad, at, fail)


def check_time(limits: LimitsConfig, pad: float, at: str, fail: Fail) -> None:
    """Calls `fail` where the longest request holds no task beside the pad (seconds)."""
    if limits.max_tr is not None and limits.max_tr <= pad:
        fail(f"{at}.max_tr", f"{limits.max_tr:g} s leaves no time for a task: the pad takes {pad:g} s")
