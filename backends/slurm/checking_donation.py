"""Whether Slurm has pilots on donated nodes make room for local jobs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

from adaptor.config.schema import SiteConfig
from adaptor.units import format_duration
from backends.base import SchedulerError
from backends.donation import donation_terms
from backends.findings import Finding, error, ok, warning
from backends.slurm.donation import donatable
from backends.slurm.fields import parse_limit
from backends.slurm.rows import NodeRow, Partition, find_partition


def check_donation(
    site: SiteConfig,
    rows: Collection[NodeRow],
    partitions: Mapping[str, Partition],
    settings: Mapping[str, str],
) -> Iterator[Finding]:
    """That jobs of the donation's partition are preempted by those of the site's, and in time.

    Agents are outside of Slurm's book-keeping: of their site only the nodes are looked at.
    """
    if site.donation is None:
        return
    try:
        count = len(donatable(rows, site))
    except SchedulerError as problem:
        yield error(str(problem))
        return
    yield ok(f"donation: {count} nodes may be donated")
    if site.donation.mode == "preemptible":
        yield from _check_preemption(site, partitions, settings)


def _check_preemption(
    site: SiteConfig, partitions: Mapping[str, Partition], settings: Mapping[str, str]
) -> Iterator[Finding]:
    kind = settings.get("PreemptType", "preempt/none")
    terms = donation_terms(site)
    own, donated = (find_partition(partitions.values(), each.partition) for each in (site, terms))
    if kind == "preempt/none":
        yield error(
            "donation: Slurm preempts no job here (PreemptType): local jobs would wait for donated nodes"
        )
    elif kind == "preempt/partition_prio" and own is not None and donated is not None:
        yield _by_partition(own, donated)
        yield from _check_manner(donated)
    else:
        yield warning(
            f"donation: which jobs yield is decided by {kind}: see that those of {_named(terms)} do, with "
            "`sacctmgr show qos format=name,preempt,preemptmode,gracetime`"
        )
    exempt = parse_limit(settings.get("PreemptExemptTime", "0"))
    if 0 < exempt < math.inf:
        yield error(
            f"donation: no job makes room in its first {format_duration(exempt)} (PreemptExemptTime): local "
            "jobs would wait for donated nodes that long"
        )


def _by_partition(own: Partition, donated: Partition) -> Finding:
    if donated.preempt_mode == "OFF":
        return error(
            f"donation: jobs of partition {donated.name} are not preempted (PreemptMode=OFF): local jobs "
            "would wait for donated nodes; name a partition whose jobs are"
        )
    if donated.tier >= own.tier:
        return error(
            f"donation: jobs of partition {own.name} (PriorityTier={own.tier}) do not preempt those of "
            f"{donated.name} (PriorityTier={donated.tier}): local jobs would wait for donated nodes"
        )
    return ok(
        f"donation: jobs of partition {donated.name} make room for those of {own.name}, with "
        f"{format_duration(donated.grace)} to leave"
    )


def _check_manner(donated: Partition) -> Iterator[Finding]:
    if donated.preempt_mode.startswith(("SUSPEND", "GANG")):
        yield warning(
            f"donation: pilots in partition {donated.name} are stopped, not ended (PreemptMode="
            f"{donated.preempt_mode}): their memory is not free for local jobs; CANCEL would be better"
        )
    elif donated.preempt_mode != "OFF" and donated.grace < 1:
        yield warning(
            f"donation: pilots in partition {donated.name} are killed without notice (GraceTime=0): what "
            "their tasks did is lost without a word; a few seconds are enough"
        )


def _named(terms: SiteConfig) -> str:
    return f"QOS {terms.qos}" if terms.qos else f"partition {terms.partition or 'by default'}"
