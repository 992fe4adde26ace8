"""The order in which a simulated cluster serves its queue, and how deep backfilling looks into it."""

from __future__ import annotations

import msgspec

DAY = 86_400


class FairShare(msgspec.Struct, frozen=True, kw_only=True):
    """Priorities as of Slurm's `priority/multifactor` with `FAIR_TREE`, all users with equal shares.

    A job's priority is `weight` times the fraction of the users who have used at least as much as its user,
    plus `age_weight` times its time in the queue over `longest_age`. Usage is processor-seconds. The weights
    are those of the example in Slurm's documentation, the times are its defaults.
    """

    half_life: int = 7 * DAY
    """Seconds in which usage halves."""
    period: int = 300
    """Seconds between two rankings of the queue. A job that comes in between is placed by its priority."""
    weight: int = 10_000
    age_weight: int = 1_000
    longest_age: int = 7 * DAY
    """Seconds after which a job's age no longer adds to its priority."""


class QueueRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of a queue, in addition to its policy.

    A job that backfilling does not look at starts as the first job of the queue.
    """

    fair_share: FairShare | None = None
    """None: jobs are served in the order of submission."""
    per_user: int = 0
    """Waiting jobs of a user that backfilling looks at, as `bf_max_job_user` of Slurm; 0: all."""
    depth: int = 0
    """The same of all users together, as `bf_max_job_test`; 0: all."""

    @property
    def bounded(self) -> bool:
        """Whether some waiting jobs may have no reservation under conservative backfilling."""
        return bool(self.per_user or self.depth)


BY_SUBMISSION = QueueRules()
