"""Forecasts calibrated as at a site: by other sites at first, and by what has come there since."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Sequence

import msgspec

from adaptor.forecast.calibration import Kind, Raw, calibrated, kind_of_start, score
from adaptor.forecast.past_waits import WEIGHTS, ByPast, Weights, mixed, ratio, weights_of
from adaptor.forecast.starts_seen import NEWEST, is_right
from adaptor.model import Estimate

_PLACES = 40  # the measured scores divide all into this number of parts


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A forecast and what came; seconds from the submission."""

    site: str
    """Forecasts of one are the past of each other."""
    machine: str
    """The trace: others are other machines."""
    instant: float
    """Time of the submission, seconds of the trace."""
    raw: Raw
    came: float

    @property
    def score(self) -> float:
        return score(self.raw, self.came)


def as_measured(scores: Sequence[float]) -> list[float]:
    """Quantiles of the scores, which stand for 39 forecasts (`adaptor.forecast.measured_scores`)."""
    found = sorted(scores)
    places = (round(part * (len(found) + 1) / _PLACES) for part in range(1, _PLACES))
    return [round(found[min(len(found), max(1, place)) - 1], 2) for place in places]


def by_others(cases: Sequence[Case]) -> list[Estimate]:
    """Each as at a new site: by the scores of the other machines."""
    return _calibrated(cases, learns=False)


def by_past(cases: Sequence[Case]) -> list[Estimate]:
    """Each with the record of its site too: what had come by the time when it was made."""
    return _calibrated(cases, learns=True)


def mixed_by_past(
    cases: Sequence[Case], pasts: Sequence[ByPast | None], among: Sequence[Weights] = WEIGHTS
) -> list[Case]:
    """Each with past waits mixed in as a daemon would have: by how near both had come by then.

    Args:
        cases: by the plan alone; times count from the submission.
        pasts: by past waits alone, of the same starts.
        among: the weights that may be chosen, the first while little is known.
    """
    found: dict[int, Case] = {}
    newest: dict[str, deque[Weights]] = defaultdict(lambda: deque(maxlen=NEWEST))
    coming: list[tuple[float, int]] = []
    for place in sorted(range(len(cases)), key=lambda each: cases[each].instant):
        case, past = cases[place], pasts[place]
        while coming and coming[0][0] <= case.instant:
            other = heapq.heappop(coming)[1]
            before, its = cases[other], pasts[other]
            if its is not None:
                told = (before.raw.ends.value, its.like.value, its.shape.value)
                plan, like, shape = (ratio(each, before.came) for each in told)
                newest[before.site].append((plan, like, shape))
        ends = mixed(case.raw.ends, past, weights_of(newest[case.site], among))
        raw = msgspec.structs.replace(case.raw, ends=ends, kind=kind_of_start(ends, 0.0))
        found[place] = msgspec.structs.replace(case, raw=raw)
        heapq.heappush(coming, (case.instant + case.came, place))
    return [found[place] for place in range(len(cases))]


def by_right_record(cases: Sequence[Case], ends: Sequence[Estimate]) -> list[bool]:
    """Whether the record of the site agreed with what intervals promise when each was made."""
    found: dict[int, bool] = {}
    newest: dict[str, deque[bool]] = defaultdict(lambda: deque(maxlen=NEWEST))
    coming: list[tuple[float, int]] = []
    for place in sorted(range(len(cases)), key=lambda each: cases[each].instant + cases[each].raw.made):
        case = cases[place]
        while coming and coming[0][0] <= case.instant + case.raw.made:
            past = heapq.heappop(coming)[1]
            newest[cases[past].site].append(ends[past].holds(cases[past].came))
        record = newest[case.site]
        found[place] = is_right(sum(record), len(record))
        heapq.heappush(coming, (case.instant + case.came, place))
    return [found[place] for place in range(len(cases))]


def _calibrated(cases: Sequence[Case], *, learns: bool) -> list[Estimate]:
    measured = _measured(cases)
    found: dict[int, Estimate] = {}
    own: dict[tuple[str, Kind], list[float]] = defaultdict(list)
    coming: list[tuple[float, int]] = []
    for place in sorted(range(len(cases)), key=lambda each: cases[each].instant + cases[each].raw.made):
        case = cases[place]
        while learns and coming and coming[0][0] <= case.instant + case.raw.made:
            past = cases[heapq.heappop(coming)[1]]
            own[past.site, past.raw.kind].append(past.score)
        found[place] = calibrated(
            case.raw, own[case.site, case.raw.kind], measured.get((case.machine, case.raw.kind))
        )
        heapq.heappush(coming, (case.instant + case.came, place))
    return [found[place] for place in range(len(cases))]


def _measured(cases: Sequence[Case]) -> dict[tuple[str, Kind], list[float]]:
    """By machine and kind: the scores of all other machines; none where there is no other."""
    scores: dict[tuple[str, Kind], list[float]] = defaultdict(list)
    for case in cases:
        scores[case.machine, case.raw.kind].append(case.score)
    found = {}
    for machine, kind in scores:
        others = [
            each for (other, its), some in scores.items() if other != machine and its == kind for each in some
        ]
        if others:
            found[machine, kind] = as_measured(others)
    return found
