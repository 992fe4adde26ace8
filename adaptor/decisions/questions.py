"""Where should the tasks of a bag run? The question to the allocation (Ricciardi & Hwang 2011)."""

from __future__ import annotations

import msgspec

from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.steering import Aim, Progress


def donated_nodes(site: str) -> str:
    """Names the donated nodes of a site among the places where tasks can run; its own name is for formal
    requests."""
    return f"{site} (donated)"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Where should the uncovered tasks of a bag run?"""

    bag: int
    aim: Aim
    progress: Progress
    offers: dict[str, tuple[SiteOffer, ...]]
    """By place, a site or its `donated_nodes`; each at least one."""

    @property
    def key(self) -> tuple[object, ...]:
        """What changes the answer at once; all else changes little by little."""
        return self.aim, self.progress.waiting, frozenset(self.offers)
