"""Treatment of requests by schedulers, as far as it decides the shape of requests."""

from __future__ import annotations

from typing import Protocol


class Traits(Protocol):
    """Treatment of requests by a scheduler, in seconds.

    The traits of a type hold before the scheduler was asked, and in simulations; those of a backend are its
    answers.
    """

    time_resolution: int = 1  # to which it rounds `tr` up
    slot_margin: int = 60  # by which a request must be shorter than a free slot to be started in it
    shrink_margin: int | None = None
    """Part of a free slot that a request with a least time does not get when it is started there.

    None: the scheduler starts no request with less than its tr, or gives it less than the slot holds.
    """
    can_reshape: bool = False  # whether `reshape` changes queued requests, and `jobs` tells what they ask for
    can_release: bool = False  # whether `release` gives nodes of a running pilot back
    can_follow: bool = False  # whether a job may wait for the end of another one (`PilotOrder.after`)
    most_in_array: int = 1  # equal pilots that `submit_array` takes at once; 1: there are no arrays
    backfilled: int | None = None  # waiting jobs of one user that backfilling looks at; None: all

    def learn(self, told: Traits) -> None:
        """Have the traits of another."""
        self.time_resolution, self.slot_margin = told.time_resolution, told.slot_margin
        self.shrink_margin = told.shrink_margin
        self.can_reshape, self.can_release = told.can_reshape, told.can_release
        self.can_follow, self.most_in_array = told.can_follow, told.most_in_array
        self.backfilled = told.backfilled
