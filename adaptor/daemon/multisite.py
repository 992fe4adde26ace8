"""The sites as they know of each other: one division of the demand among all of them at an instant.

Each site steps by itself. When it decides, the division is made anew for all sites, from what was last
seen of each, and the site takes its own part; so a scheduler that hangs never holds another site up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.crafting.availability import availability
from adaptor.crafting.multisite.division import by_demand, divide
from adaptor.crafting.multisite.site_status import NO_ANSWER, Part, Standing
from adaptor.crafting.profile import Profile
from adaptor.crafting.situation import Demand, Group, PilotView, SiteView
from adaptor.daemon.credits.allotting import Allotments
from adaptor.daemon.credits.asking import as_if_it_answered, questions_of
from adaptor.daemon.credits.offering import Question
from adaptor.daemon.holdoff import why_held_back
from adaptor.daemon.site_state import SiteState
from adaptor.daemon.viewing import view_of
from adaptor.model import PendingJob, PilotState, QueueState

PATIENCE = 10.0
"""Seconds that a site waits for the queue of another one to be read, before it decides without it."""
_LEAST_SILENCE = 20.0
_INTENDED = 1 << 40
"""The first id of requests that have none yet: they come after all pilots."""


def acquaint(sites: Mapping[str, SiteState], polls: Mapping[str, float]) -> None:
    """Let sites know of each other, where there are several.

    `polls`: seconds between two looks at the queue, by site.
    """
    if len(sites) > 1:
        peers = Peers(sites, polls)
        for site in sites.values():
            site.peers = peers


class Peers:
    def __init__(self, sites: Mapping[str, SiteState], polls: Mapping[str, float]) -> None:
        self._sites = sites
        self._polls = polls
        self._missed: dict[str, float] = {}
        """Since when the others have wanted to know the queue of a site."""
        self.allotments = Allotments()
        self._profiles: dict[str, tuple[QueueState, tuple[PendingJob, ...], Profile]] = {}

    @property
    def sites(self) -> Mapping[str, SiteState]:
        return self._sites

    def part(self, name: str, demands: Sequence[Demand]) -> Part:
        """What the division leaves to a site, by its demands."""
        groups = self._sites[name].core.broker.groups()
        parts = divide(self._standings(time.time()), groups, self.allotments.wishes())
        return by_demand(parts[name], name, groups, demands)

    async def weigh(self, name: str) -> None:
        """Before `part`: weigh cost against time for the bags whose users care, as far as that is due."""
        now = time.time()
        site = self._sites[name]
        questions: list[Question] = []
        if site.core.broker.books.alone:
            standings = {each: as_if_it_answered(known) for each, known in self._standings(now).items()}
            questions = questions_of(self._sites, standings, site.core.broker.groups(), now)
        before = self.allotments.problem
        await self.allotments.renew(questions)
        if self.allotments.problem not in ("", before):
            site.explain("problem", self.allotments.problem)

    def _standings(self, now: float) -> dict[str, Standing]:
        return {name: self._standing(site, now) for name, site in self._sites.items()}

    def awaited(self, name: str) -> list[str]:
        """Sites that this one still waits for; they are woken, and it will be woken by their answers."""
        now = time.time()
        wanted = _rivals(name, self._sites[name].core.broker.groups())
        unknown = [each for each in wanted if not self._known(self._sites[each], now)]
        for each in unknown:
            self._missed.setdefault(each, now)
            self._sites[each].wake.set()
        return [each for each in unknown if now - self._missed[each] < PATIENCE]

    def heard(self, name: str) -> None:
        """The queue of a site was read, or could not be: whoever waited for it may decide."""
        if self._missed.pop(name, None) is not None:
            for each, site in self._sites.items():
                if each != name:
                    site.wake.set()

    def _known(self, site: SiteState, now: float) -> bool:
        """Whether enough is known of a site to reckon with it, or without it."""
        return self._fresh(site, now) or bool(why_held_back(site, now)) or self._silent(site, now)

    def _fresh(self, site: SiteState, now: float) -> bool:
        return site.seen is not None and now - site.seen.now < 2 * self._polls[site.name] + PATIENCE

    def _silent(self, site: SiteState, now: float) -> bool:
        return site.problem_since is not None or site.silence(now) > site.config.command_timeout

    def _standing(self, site: SiteState, now: float) -> Standing:
        queue = site.seen
        view = view_of(site, queue, now)
        view = msgspec.structs.replace(view, pilots=(*view.pilots, *_intended(site, now)))
        return Standing(
            view=view,
            free=self._free(site, queue, view) if queue is not None else None,
            waits=site.waits,
            closed=self._closed(site, now),
            lost=self._silent(site, now) and site.silence(now) > self._given_up_after(site),
        )

    def _given_up_after(self, site: SiteState) -> float:
        """Seconds of silence after which what was planned at a site is divided again."""
        return max(_LEAST_SILENCE, 4 * self._polls[site.name], site.config.command_timeout)

    def _closed(self, site: SiteState, now: float) -> str:
        if self._silent(site, now):
            return NO_ANSWER
        if not self._fresh(site, now):
            return "its queue could not be read yet"
        return why_held_back(site, now)

    def _free(self, site: SiteState, queue: QueueState, view: SiteView) -> Profile:
        """What is free beside the queue and beside what was submitted since it was read."""
        unseen = tuple(
            PendingJob(f"pilot {pilot.id}", pilot.request.p, pilot.request.tr)
            for pilot in view.pilots
            if pilot.state is PilotState.SUBMITTING or (pilot.submitted or 0.0) >= queue.now
        )
        known = self._profiles.get(site.name)
        if known is None or known[0] is not queue or known[1] != unseen:
            state = msgspec.structs.replace(queue, pending=(*queue.pending, *unseen))
            known = self._profiles[site.name] = (queue, unseen, availability(state))
        return known[2]


def _rivals(name: str, groups: Sequence[Group]) -> set[str]:
    """The other sites at which tasks may run that this one could have."""
    wanted = {site for group in groups if group.waiting and name in group.at for site in group.at}
    return wanted - {name}


def _intended(site: SiteState, now: float) -> list[PilotView]:
    """Requests that the site is about to submit, as if they were submitted."""
    return [
        PilotView(
            id=_INTENDED + number,
            state=PilotState.SUBMITTING,
            request=issue.crafted.request,
            submitted=now,
            predicted_start=issue.crafted.predicted_start,
            bag=issue.demand.bag,
        )
        for number, issue in enumerate(site.intended)
    ]
