"""Differences between pilots on donated nodes and a site's formal requests."""

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

    `limits.max_tr` is of formal requests, which are made elsewhere. `JobReport.granted` reports what the
    pilot got, and its workers know their end.
    """
    if order.request.tr <= longest:
        return order
    return msgspec.structs.replace(order, request=Request(order.request.p, math.floor(longest)))


def nodes_at_once(site: SiteConfig) -> int:
    """Donated nodes on which pilots are started, and ended, at the same time.

    The scheduler gets one job after the other. Of agents, an sshd takes ten conversations of one connection
    (MaxSessions), the daemon's others among them.
    """
    if site.donation is None or site.donation.mode == "preemptible":
        return 1
    return 16 if site.ssh is None else 4


_AGENT = "agent:"


def agent_id(node: str, tag: str) -> str:
    """The id of the agent on a node that carries out the order `tag`."""
    return f"{_AGENT}{node}:{tag}"


def node_and_tag(id: str) -> tuple[str, str]:
    """Node and tag in an agent's id."""
    node, _, tag = id.removeprefix(_AGENT).partition(":")
    return node, tag


def is_agent(id: str) -> bool:
    """Whether it is the id of an agent, and not one of the scheduler's."""
    return id.startswith(_AGENT)
