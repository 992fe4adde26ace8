"""Time that the tasks of a line need at a site: what others took, and what each has shown of itself. Pure.

A task may need more or less than others: its user has said how long it takes, it was cut or preempted, or it
has checkpointed a part of its work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from adaptor.forecast.bag_facts import idle_costs
from adaptor.model import TaskState
from adaptor.runtimes.learner import SHORTEST
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.lines import Line
from adaptor.scheduling.state import SchedulingState


class TaskNeeds:
    """Seconds that the tasks of one line need at one site, by what is known now."""

    def __init__(self, state: SchedulingState, bag: Bag, site: str, line: Line) -> None:
        self.learner = state.learner_of(bag, site, line)
        self._bag, self._terms = bag, state.sites[site]
        self._assumed = bag.assumed_at(site) is not None
        more_wait = bag.count(TaskState.WAITING) > bag.count(TaskState.LEASED)
        tries = more_wait or idle_costs(bag.spec, bag.told, bag.earlier, alone=bag.id in state.alone)
        # A task starts where it ends in time as likely as not.
        self._even = tries and bag.spec.signal is None

    def whole(self, task: int, *, even: bool = False) -> float:
        """The estimated runtime of a task from its beginning, whatever became of it so far.

        Where its user has said how long this one task takes, that counts in place of what others took.
        `even`: see `RuntimeLearner`.
        """
        expected = self._bag.sizes.time(task) if self._bag.sizes.timed else None
        if expected is not None:
            return max(self.learner.possible(expected), self.learner.needed_by(task))
        return self.learner.estimate_of(task, even=even)

    def estimate(self, task: int, *, even: bool = False) -> float:
        """The estimated runtime of a task: not less than it ran before a preemption, and without the work
        that it has checkpointed.

        A task that has worked for longer than estimated is taken to be half done, as far as a request can
        hold the rest.
        """
        whole = max(self.whole(task, even=even), self._bag.preempted_of(task).ran)
        worked = self._bag.progress.get(task, 0.0)
        left = whole - worked
        if left < SHORTEST:
            left = max(whole, min(worked, self._terms.longest))
        return self.in_pilot(left)

    def in_pilot(self, seconds: float) -> float:
        """Seconds of a pilot that a task of `seconds` needs: it should end before the signal, and it is ended
        at its time-out."""
        spec = self._bag.spec
        if spec.signal is not None:
            seconds = max(seconds, min(seconds + spec.signal.seconds, self._terms.longest))
        return min(seconds, max(SHORTEST, spec.ended_after))

    def to_start(self, task: int) -> float:
        """Seconds that a pilot must have left when a task starts in it."""
        return self.estimate(task, even=self._even) + self._terms.last

    def fitting(
        self, tasks: Iterable[int], fits: Callable[[float], bool]
    ) -> Iterator[tuple[int, int, float]]:
        """Tasks among some that may start: position among them, number, and `to_start`.

        Thousands that were cut are passed over quickly.

        Args:
            fits: whether a pilot has this number of seconds left. It has fewer, if it has these.
        """
        bag, cuts, too_long = self._bag, self.learner.cuts, math.inf
        none_needs_less = not (bag.sizes.timed or bag.progress)  # than one that has never run
        uncut = self.learner.even if self._even else self.learner.estimate
        if none_needs_less and not fits(self.in_pilot(uncut) + self._terms.last):
            return
        by_cuts_alone = none_needs_less and not bag.preempted
        for position, task in enumerate(tasks):
            if by_cuts_alone and cuts.get(task, 0.0) >= too_long:
                continue
            seconds = self.to_start(task)
            if fits(seconds):
                yield position, task, seconds
            elif by_cuts_alone:
                too_long = min(too_long, cuts[task])

    @property
    def known(self) -> bool:
        """Whether more is known of the line than the default runtime, which says nothing."""
        return self.learner.knows or self._assumed

    def on_donated(self, task: int) -> float:
        """Seconds that a task is taken to need on a donated node: what was learned of its bag, and more than
        it ran before it was preempted. 0 while nothing is known: it is started anywhere then."""
        timed = self._bag.sizes.timed and self._bag.sizes.time(task) is not None
        whole = self.whole(task) if self.known or timed else 0.0
        return max(whole, self._bag.preempted_of(task).ran)

    @property
    def least_on_donated(self) -> float:
        """Seconds that no task needs less than on a donated node; most need no more."""
        return self.learner.estimate if self.known and not self._bag.sizes.timed else 0.0


def seconds_to_start(state: SchedulingState, bag: Bag, site: str, task: int) -> float:
    """Seconds that a pilot of a site must have left when one task of a bag starts in it."""
    return TaskNeeds(state, bag, site, bag.lines.of(task)).to_start(task)
