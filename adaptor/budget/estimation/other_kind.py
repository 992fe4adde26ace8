"""Running tasks of another kind: of which none has finished, so that nothing says how long they take.

Where all finished tasks took a minute and some have run for two, the finished ones cannot tell when those
will end. Of something of unknown scale, seen at no special moment of its life, only this is known: it lasts k
times as long as it has lasted so far with probability 1 / k (Gott 1993; Jeffreys' prior of a scale).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor.budget.estimation.pareto_tail import Censored, Tail, evidence_ratio

GAP = 1.25
"""A task that has run for so many times as long as the longest finished one may be of another kind."""
_PRIOR = 0.1
"""How likely that is before it is asked how well the finished tasks explain it."""
_LONGEST = 1000.0
"""Times the time run so far."""


class OtherKind(msgspec.Struct, frozen=True):
    """Tasks that all take equally long: a distribution of excesses, as `Tail`."""

    beyond: float
    """Seconds beyond the threshold."""

    def excess(self, survival: float) -> float:  # noqa: ARG002
        return self.beyond

    def further(self, beyond: float) -> float:
        return max(0.0, 1 - beyond / self.beyond) if self.beyond else 0.0

    def survival(self, excess: float) -> float:
        return 1.0 if excess < self.beyond else 0.0

    def moments(self, survival: float) -> tuple[float, float]:  # noqa: ARG002
        return self.beyond, 0.0


def other_kinds(ran: float, threshold: float, count: int) -> list[OtherKind]:
    """So many, equally likely, of tasks that have run for `ran` seconds so far."""
    chances = (max((place + 0.5) / count, 1 / _LONGEST) for place in range(count))
    return [OtherKind(ran / chance - threshold) for chance in chances]


def chance_of_another_kind(
    tails: Sequence[Tail], excesses: Sequence[float], running: Censored, threshold: float
) -> float:
    """How likely the tasks that have run the longest are of another kind than the finished ones.

    Two things are held against each other: how likely it is, by the tails of the finished tasks, that the
    others have run on for so long from where the longest finished one ended; and how likely, if they are of
    another kind.

    Args:
        tails: of the finished tasks.
        excesses: seconds beyond the threshold of finished tasks; `running`: the same, so far.
    """
    longest = max(excesses, default=0.0)
    ran = max(running.excesses, default=0.0)
    if threshold + ran <= GAP * (threshold + longest):
        return 0.0
    other = _PRIOR * (threshold + longest) / (threshold + ran)
    same = (1 - _PRIOR) * evidence_ratio(tails, excesses, running, running.until(longest))
    return other / (other + same)
