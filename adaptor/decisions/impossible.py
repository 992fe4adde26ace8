"""Tasks that a site cannot run: never, because no node of it holds one, or not now, after failures. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from adaptor.crafting.fits import why_no_node_holds
from adaptor.crafting.situation import Demand
from adaptor.decisions.actions import GiveUp
from adaptor.decisions.holdoff import why_shape_held_off
from adaptor.decisions.snapshot import SiteFacts, Snapshot


def why_not_for(site: SiteFacts, demand: Demand, now: float) -> str:
    """Why a site gets no request for these tasks now; empty: nothing of theirs stands in the way."""
    return why_never(site, demand) or why_shape_held_off(site, demand.shape, now)


def why_never(site: SiteFacts, demand: Demand) -> str:
    """Why a site can never run these tasks; empty: it can, or that is not known."""
    if site.queue is None:
        return ""
    return why_no_node_holds(site.queue, demand.task)


def give_up_impossible(snapshot: Snapshot) -> Iterator[GiveUp]:
    """The tasks, by bag and size, that no node of any site holds at which they may run."""
    for demand, payers in zip(snapshot.demands, snapshot.payers, strict=True):
        reasons = {name: why_never(snapshot.sites[name], demand) for name in _places(snapshot, demand)}
        if payers and all(reasons.values()):
            told = "; ".join(f"{name}: {why}" for name, why in reasons.items())
            for bag in payers:
                yield GiveUp(bag, f"no node can run it: {told}", demand.task)


def _places(snapshot: Snapshot, demand: Demand) -> set[str]:
    """The sites at which any of these tasks may run."""
    elsewhere = {
        name for group in snapshot.groups for name, there in group.at.items() if there.shape == demand.shape
    }
    return elsewhere | {snapshot.site}
