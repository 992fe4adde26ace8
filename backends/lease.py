"""How the jobs by which nodes are lent differ from a site's formal requests."""

from __future__ import annotations

import math

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.model import Request
from backends.base import PilotOrder

SOON = 5.0
"""Seconds within which a planned start counts as now: the scheduler's clock need not be ours."""


def terms_of_leases(site: SiteConfig) -> SiteConfig:
    """The site with the partition, account, QOS and arguments under which its leases are submitted.

    Preemptible: those of `donation`. Where it names no partition or account the site's own count; the
    site's QOS and arguments never do, for under them a job might not yield.
    """
    lent = site.donation
    if lent is None or lent.mode != "preemptible":
        return site
    return msgspec.structs.replace(
        site,
        partition=lent.partition or site.partition,
        account=lent.account or site.account,
        qos=lent.qos,
        extra_args=lent.extra_args,
    )


def shortened(order: PilotOrder, longest: float) -> PilotOrder:
    """A lease for as long as its partition (or queue) allows, `longest` seconds.

    `limits.max_tr` is of formal requests, which are made elsewhere. What the lease got is told as
    `JobReport.granted`, and its workers know their end.
    """
    if order.request.tr <= longest:
        return order
    return msgspec.structs.replace(order, request=Request(order.request.p, math.floor(longest)))
