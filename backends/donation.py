"""How the jobs by which nodes are donated differ from a site's formal requests."""

from __future__ import annotations

import math

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.model import Request
from backends.base import PilotOrder


def donation_terms(site: SiteConfig) -> SiteConfig:
    """The site with the partition, account, QOS and arguments of its pilots on donated nodes.

    Preemptible: those of `donation`. Where it names no partition or account the site's own count; the
    site's QOS and arguments never do, for under them a job might not yield.
    """
    donation = site.donation
    if donation is None or donation.mode != "preemptible":
        return site
    return msgspec.structs.replace(
        site,
        partition=donation.partition or site.partition,
        account=donation.account or site.account,
        qos=donation.qos,
        gres=None,
        licenses=None,
        extra_args=donation.extra_args,
    )


def shortened(order: PilotOrder, longest: float) -> PilotOrder:
    """A pilot on a donated node for as long as its partition (or queue) allows, `longest` seconds.

    `limits.max_tr` is of formal requests, which are made elsewhere. What the pilot got is told as
    `JobReport.granted`, and its workers know their end.
    """
    if order.request.tr <= longest:
        return order
    return msgspec.structs.replace(order, request=Request(order.request.p, math.floor(longest)))
