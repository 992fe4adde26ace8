"""Expectations for a new bag from earlier bags of its kind: the runtimes and the memory of its tasks. Pure.

The newest bag counts half of all, the one before it a quarter, and so on. `python -m
lab.campaign.earlier_bags` measures on traces how far the mean of the next bag is from that.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adaptor.bag_spec import TaskKind
from adaptor.runtimes.known import EarlierTasks
from adaptor.units import counted, format_duration

KEPT = 12  # bags of a kind at a site that count: one more would weigh 1/4096
_POINTS = 21  # runtimes that are kept of a bag: 0, 5, …, 100 %
_DECAY = 0.5
"""The weight of a bag, as a part of that of the next one. CTC, by user and executable: 68 % of the bags are
within 2.04 times; with 0.7 within 2.09, with 1 within 2.28."""
_USUAL = math.log(2)
"""One deviation of the logarithm of a new bag's mean, before bags show their own (CTC: 68 % within 2)."""
_USUAL_WEIGHT = 1.0
_ELSEWHERE = 3.0
"""The least factor where the bags ran at another site, whose processors may be faster or slower."""
_ENOUGH = 30  # earlier tasks, as many as a quote samples
_MOST_UNKNOWN = 0.1  # the share of a bag's tasks whose kinds may be unknown
_MEMORY_QUANTILE = 0.98
_MEMORY_MARGIN = 1.25
_MEMORY_BAGS = 3  # the newest bags of a site whose memory counts
_MEMORY_STEP = 64 << 20  # bytes; requests are a multiple of it


class KindRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the finished tasks of a kind in one bag at one site. Seconds, bytes."""

    tasks: int
    mean: float
    """Mean of the runtimes."""
    runtimes: tuple[float, ...]
    """Evenly spaced quantiles, from the shortest to the longest."""
    memory: int = 0
    """Peak that 98 % of the tasks stay below; 0: none was measured."""


def record_of(tasks: int, runtimes: Sequence[float], peaks: Sequence[int]) -> KindRecord:
    """The record of a bag. `tasks`: finished ones; `runtimes`, `peaks`: a sample of them."""
    kept, last = sorted(runtimes), len(runtimes) - 1
    if last >= _POINTS:
        kept = [kept[round(place * last / (_POINTS - 1))] for place in range(_POINTS)]
    return KindRecord(
        tasks=tasks,
        mean=math.fsum(runtimes) / len(runtimes),
        runtimes=tuple(kept),
        memory=int(_quantile(_weighted([(peaks, 1.0)]), _MEMORY_QUANTILE)) if peaks else 0,
    )


def earlier_tasks(
    kinds: Sequence[TaskKind], records: Mapping[str, Mapping[str, Sequence[KindRecord]]], site: str
) -> EarlierTasks | None:
    """Figures of earlier tasks for a new bag at a site; None: too little is known of its kinds.

    Args:
        records: by key of a kind and by site: the newest bag first.
    """
    known: list[tuple[TaskKind, EarlierTasks]] = []
    unknown = 0
    for kind in kinds:
        at = {name: each for name, each in records.get(kind.key, {}).items() if each}
        if site in at:
            known.append((kind, _earlier(kind.name, at[site])))
        elif at:
            other = max(at, key=lambda name: sum(record.tasks for record in at[name]))
            there = _earlier(f"{kind.name} at {other}", at[other])
            known.append((kind, msgspec.structs.replace(there, factor=max(_ELSEWHERE, there.factor))))
        else:
            unknown += kind.tasks
    if not known or unknown > _MOST_UNKNOWN * sum(kind.tasks for kind in kinds):
        return None
    if len(known) == 1:
        return known[0][1]
    total = sum(kind.tasks for kind, _ in known)
    return EarlierTasks(
        kind=" and ".join(earlier.kind for _, earlier in known),
        tasks=sum(earlier.tasks for _, earlier in known),
        mean=sum(kind.tasks * earlier.mean for kind, earlier in known) / total,
        factor=max(earlier.factor for _, earlier in known),
        low=min(earlier.low for _, earlier in known),
        high=max(earlier.high for _, earlier in known),
    )


def _earlier(name: str, records: Sequence[KindRecord]) -> EarlierTasks:
    """Figures of earlier tasks by the records of a kind at one site, the newest first."""
    weights = [_DECAY**age for age in range(len(records))]
    logs = [math.log(max(1e-3, record.mean)) for record in records]
    middle = sum(weight * log for weight, log in zip(weights, logs, strict=True)) / sum(weights)
    runtimes = _weighted((record.runtimes, weight) for record, weight in zip(records, weights, strict=True))
    return EarlierTasks(
        kind=name,
        tasks=sum(record.tasks for record in records),
        mean=math.exp(middle),
        factor=_factor(logs),
        low=_quantile(runtimes, 0.05),
        high=_quantile(runtimes, 0.95),
    )


def _factor(logs: Sequence[float]) -> float:
    """Factor within which a new bag is expected, by the distance of each bag from the one before it; at least
    2."""
    steps = [abs(newer - older) for newer, older in itertools.pairwise(logs)]
    weights = [_DECAY ** (age / 2) for age in range(len(steps))]
    squares = _USUAL_WEIGHT * _USUAL**2 + sum(
        weight * step**2 for weight, step in zip(weights, steps, strict=True)
    )
    return max(2.0, math.exp(math.sqrt(squares / (_USUAL_WEIGHT + sum(weights)))))


def memory_needed(
    kinds: Sequence[TaskKind], records: Mapping[str, Mapping[str, Sequence[KindRecord]]]
) -> int | None:
    """Bytes for each task of a bag, with a margin; None: the peaks of too many of its tasks are unknown.

    `records`: by key of a kind and by site, the newest bag first; memory does not depend on the site.
    """
    most = unknown = 0
    for kind in kinds:
        newest = [record for at in records.get(kind.key, {}).values() for record in at[:_MEMORY_BAGS]]
        peak = max((record.memory for record in newest), default=0)
        most = max(most, peak)
        unknown += 0 if peak else kind.tasks
    if not most or unknown > _MOST_UNKNOWN * sum(kind.tasks for kind in kinds):
        return None
    return math.ceil(most * _MEMORY_MARGIN / _MEMORY_STEP) * _MEMORY_STEP


def _weighted(groups: Iterable[tuple[Sequence[float], float]]) -> list[tuple[float, float]]:
    """Values with their weights, in order; those of a group have its weight together."""
    return sorted((value, weight / len(values)) for values, weight in groups for value in values)


def _quantile(weighted: Sequence[tuple[float, float]], share: float) -> float:
    """The least value that this share of the weight does not exceed."""
    sums = list(itertools.accumulate(weight for _, weight in weighted))
    place = bisect.bisect_left(sums, share * sums[-1] * (1 - 1e-9))
    return weighted[min(place, len(weighted) - 1)][0]


def tells_enough(earlier: EarlierTasks) -> bool:
    """Whether a bag can be quoted without a sample: enough tasks of its kinds ran here, as long each time."""
    return earlier.tasks >= _ENOUGH and earlier.factor < _ELSEWHERE


def earlier_text(earlier: EarlierTasks) -> str:
    """Sentence on earlier tasks: `12 earlier tasks of fit.py took 4m to 9m`."""
    low, high = format_duration(earlier.low), format_duration(earlier.high)
    took = low if low == high else f"{low} to {high}"
    return f"{counted(earlier.tasks, 'earlier task')} of {earlier.kind} took {took}"
