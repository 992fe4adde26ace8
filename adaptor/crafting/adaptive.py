"""The adaptive heuristic: the set of free slots with the best throughput, cut to what the tasks need."""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.candidates import Candidate, Work, optimize
from adaptor.crafting.places import CraftingSituation
from adaptor.crafting.profile import Profile
from adaptor.crafting.reasons import shown
from adaptor.model import CraftedRequest, FreeSlot
from adaptor.units import counted, format_duration

BETTER = 1 + 1e-9  # a throughput must improve by this factor: smaller differences are rounding errors


def adaptive(situation: CraftingSituation) -> list[CraftedRequest]:
    """Algorithm 2 of De Rose et al. 2008, §4.3.1, repeated while requests are allowed and tasks remain.

    Where the paper is silent, we chose:

    - The throughput ("the ratio between the number of finished tasks and the requested turn-around
      time") is that of one request; the worst request has the least throughput.
    - Free slots are all maximal rectangles of the profile. They overlap, so the chosen requests must
      fit together: the first slot is searched in the profile without the chosen requests, an exchange
      uses only processors that the other chosen requests leave free, and a slot wider than maxProc may
      hold several requests.
    - Each repetition plans around the requests that are already crafted.

    Returns an empty list if no task fits in any request or free slot.
    """
    work = work_of(situation)
    profile = situation.free.profile(work.shape.chunk).copy()
    allowed = situation.allowed_requests
    crafted: list[CraftedRequest] = []
    while len(crafted) < allowed and work.remaining > 0:
        chosen = _choose(profile, work, allowed - len(crafted))
        if not chosen:
            break
        tasks = shares(chosen, work.remaining)
        for candidate, share in zip(chosen, tasks, strict=True):
            _take(profile, candidate)
            crafted.append(as_crafted(candidate, share, situation))
        work = msgspec.structs.replace(work, remaining=work.remaining - sum(tasks))
    return crafted


def work_of(situation: CraftingSituation) -> Work:
    """The work for which candidates are made."""
    return Work(shape=situation.shape, now=situation.queue.now, remaining=situation.remaining_tasks)


def best_candidate(situation: CraftingSituation) -> Candidate | None:
    """The only request that Algorithm 2 would choose; None: no task fits in any request or free slot."""
    work = work_of(situation)
    if not situation.allowed_requests:
        return None
    chosen = _choose(situation.free.profile(work.shape.chunk), work, 1)
    return chosen[0] if chosen else None


def _choose(profile: Profile, work: Work, allowed: int) -> list[Candidate]:
    """One run of Algorithm 2: a set of at most `allowed` requests that fit together."""
    left = profile.copy()
    chosen = _first_possible(left, work, allowed)
    if chosen:
        worst = _worst(chosen)
        _give(left, worst)
        for slot in profile.free_slots():
            while better := _improvement(slot, left, work, worst):
                chosen.remove(worst)
                chosen.append(better)
                _take(left, better)
                worst = _worst(chosen)
                _give(left, worst)
    return sorted(optimize(chosen, work), key=lambda candidate: (candidate.slot.start, -candidate.throughput))


def shares(chosen: list[Candidate], remaining: int) -> list[int]:
    """Tasks that each request is expected to finish; at least one stays for each later request."""
    found: list[int] = []
    for others, candidate in zip(reversed(range(len(chosen))), chosen, strict=True):
        found.append(min(candidate.tasks, remaining - others))
        remaining -= found[-1]
    return found


def _first_possible(left: Profile, work: Work, allowed: int) -> list[Candidate]:
    """The first `allowed` possible requests by start; takes their processors from `left`."""
    chosen: list[Candidate] = []
    while len(chosen) < allowed:
        possible = (work.candidate_within(slot, left) for slot in left.free_slots())
        first = next((candidate for candidate in possible if candidate), None)
        if first is None:
            break
        start, end = first.slot.start, first.slot.start + first.request.tr
        while len(chosen) < allowed and left.minimum(start, end) >= first.request.p:
            _take(left, first)
            chosen.append(first)
    return chosen


def _improvement(slot: FreeSlot, left: Profile, work: Work, worst: Candidate) -> Candidate | None:
    """A request in this slot that fits next to the others and has more throughput than the worst; or None."""
    return work.candidate_within(slot, left, worst.throughput * BETTER)


def _worst(chosen: list[Candidate]) -> Candidate:
    return min(chosen, key=lambda candidate: candidate.merit)


def _take(profile: Profile, each: Candidate) -> None:
    profile.take(each.slot.start, each.request.tr, each.request.p)


def _give(profile: Profile, each: Candidate) -> None:
    profile.give(each.slot.start, each.request.tr, each.request.p)


def as_crafted(each: Candidate, tasks: int, situation: CraftingSituation) -> CraftedRequest:
    """The request to issue for a number of the tasks."""
    request, slot, shape = each.request, each.slot, situation.shape
    wait = slot.start - situation.queue.now
    start = f"in {format_duration(wait)}" if wait > 0 else "from now"
    span = "without end" if math.isinf(slot.duration) else f"for {format_duration(slot.duration)}"
    reason = (
        f"asks {shown(request)} for {tasks} of {counted(situation.remaining_tasks, 'task')} of "
        f"{format_duration(shape.runtime)}: the slot free {start} {span} on "
        f"{counted(slot.processors, 'processor')} gives the best throughput"
    )
    if request.tr < shape.runtime + shape.rules.pad:
        need = format_duration(shape.runtime + shape.rules.pad)
        longest = format_duration(shape.rules.limits.max_tr)
        reason += f"; a task may need {need}, but a request may last {longest} at most"
    return CraftedRequest(request, slot.start, tasks, reason)
