"""Learns which share of their time limits the local jobs of a site run, by user and limit. Pure.

Users ask for the same multiple of what their jobs need, repeatedly (Tsafrir et al. 2007). What is learned
names a user by a salted hash only; the salt stays with the caller.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache

import msgspec

from adaptor.model import EndedJob, QueueState, RunningJob

MOST = 200  # shares of jobs of whatever user that count, the newest
KEPT = 2000  # jobs that are kept, the newest
_FEW = 8
"""Shares that are assumed before any is known: evenly between 0 and 1, as users' limits are (Tsafrir et al.
2007)."""
_TRACKED = 5000  # jobs that are followed at the same time, at most
FEWEST = 4  # jobs of a user from which the user's own history counts
_OWN = 30  # jobs of a user's history that count, the newest


class Ran(msgspec.Struct, frozen=True):
    """A local job that has ended."""

    owner: str
    """A salted hash of its user; empty: not known."""
    limit: int
    """Seconds; 0: not known."""
    share: float
    """Share of its limit that the job ran, from 0 to 1."""


class _Followed(msgspec.Struct, frozen=True):
    limit: float | None
    """Seconds; None: not known, or not of interest."""
    owner: str
    end: float
    seen: float


class RunShares:
    """The newest shares of jobs that were seen to start and to end, between two looks at the queue.

    A job that starts and ends between two looks is not seen. All times are epoch seconds.
    """

    def __init__(self, ran: Iterable[Ran] = (), salt: bytes = b"") -> None:
        """
        Args:
            ran: jobs that have ended, the oldest first.
            salt: at most 64 bytes, with which the names of users are hashed.
        """
        self._salt = salt
        self._ran = tuple(ran)[-KEPT:]
        self._new: tuple[Ran, ...] = ()
        self._waiting: dict[str, tuple[float, str]] = {}
        """Limit in seconds, and owner, of each job that waited at the last look."""
        self._running: dict[str, _Followed] = {}
        self._looked: float | None = None
        self._index: dict[tuple[str, int], tuple[float, ...]] | None = None
        """Shares that jobs run, by owner and limit (0: any); None: to be made."""

    @classmethod
    def of(cls, known: Sequence[float], limits: Mapping[str, tuple[float, float]], now: float) -> RunShares:
        """The shares, as if the queue had been watched all the time.

        Args:
            known: shares of jobs that have ended.
            limits: by running job: its limit in seconds, and its latest end.
        """
        found = cls([Ran("", 0, share) for share in known])
        found._running = {job: _Followed(limit, "", end, now) for job, (limit, end) in limits.items()}
        found._looked = now
        return found

    def looked(self, queue: QueueState, own: Collection[str] = ()) -> None:
        """Learn from one more look at the queue; an older one than the last teaches nothing.

        Args:
            own: jobs of ours, which teach nothing.
        """
        if self._looked is not None and queue.now <= self._looked:
            return
        states = queue.partitions.values() or (queue,)
        running = {job.id: job for state in states for job in state.running[:_TRACKED]}
        new = []
        for id, each in self._running.items():
            if id in running or id in own or each.limit is None:
                continue
            began = each.end - each.limit
            if began < queue.now:
                ended = min(each.end, (queue.now + (self._looked or queue.now)) / 2)
                share = min(1.0, max(0.0, (ended - began) / each.limit))
                new.append(Ran(self.hashed(each.owner), round(each.limit), share))
        if new:
            self._ran, self._new = (*self._ran, *new)[-KEPT:], (*self._new, *new)[-KEPT:]
            self._index = None
        kinds = {
            job.id: (state.limits.get(job.id), state.owners.get(job.id, ""))
            for state in states
            for job in state.running[:_TRACKED]
        }
        self._running = {
            id: self._followed(job, queue.now, kinds[id], own=id in own) for id, job in running.items()
        }
        self._waiting = {
            job.id: (job.tr, state.owners.get(job.id, ""))
            for state in states
            for job in state.pending[:_TRACKED]
            if 0 < job.tr < math.inf and job.id not in own
        }
        self._looked = queue.now

    def recall(self, jobs: Iterable[EndedJob], *, newest: bool = False) -> None:
        """Learn from jobs that ended, the oldest first; `newest`: after those that were seen, else before."""
        ended = [
            Ran(self.hashed(job.owner), round(job.limit), min(1.0, max(0.0, job.ran / job.limit)))
            for job in jobs
            if 0 < job.limit < math.inf
        ][-KEPT:]
        self._ran = ((*self._ran, *ended) if newest else (*ended, *self._ran))[-KEPT:]
        self._new = ((*self._new, *ended) if newest else (*ended, *self._new))[-KEPT:]
        self._index = None

    def take_new(self) -> tuple[Ran, ...]:
        """Runs learned since the last call, to be stored."""
        new, self._new = self._new, ()
        return new

    def copy(self) -> RunShares:
        """A copy for a snapshot; what is inside is never changed in place."""
        return copy.copy(self)

    def hashed(self, user: str) -> str:
        """Keyed hash by which a user is known; empty for the empty name."""
        if not user:
            return ""
        name = user.encode("utf-8", "surrogateescape")
        return hashlib.blake2b(name, key=self._salt, digest_size=8).hexdigest()

    def since(self, job: str) -> float | None:
        """Epoch seconds of a running job's start, or at the latest of its first sight; None: it is not
        followed."""
        known = self._running.get(job)
        if known is None:
            return None
        return known.seen if known.limit is None else min(known.seen, known.end - known.limit)

    def seen_since(self) -> dict[str, float]:
        """`since` of every running job."""
        return {job: since for job in self._running if (since := self.since(job)) is not None}

    @property
    def looked_at(self) -> float:
        """Epoch seconds of the last look at the queue; negative infinity: there was none."""
        return -math.inf if self._looked is None else self._looked

    def __len__(self) -> int:
        """Jobs that have taught something, as far as they are kept."""
        return len(self._ran)

    @property
    def known(self) -> tuple[float, ...]:
        """Shares from 0 to 1 that are equally likely, in order: those learned and a few assumed ones."""
        assumed = [(number + 0.5) / _FEW for number in range(_FEW)]
        return tuple(sorted([*(each.share for each in self._ran[-MOST:]), *assumed]))

    def of_user(self, user: str, limit: float | None) -> tuple[float, ...]:
        """Shares of its limit that a job of a user (by name) may run; `limit`: seconds; None: not known.

        They are those of the user's jobs with this limit, or else with any; of all users' jobs if the user
        has too few.
        """
        owner = self.hashed(user)
        if not owner:
            return self.known
        index = self._indexed()
        exact = () if limit is None or math.isinf(limit) else index.get((owner, round(limit)), ())
        return exact or index.get((owner, 0), ()) or self.known

    def by_job(self, queue: QueueState) -> dict[str, tuple[float, ...]]:
        """Shares of its limit that each job of the queue may run whose user has a history."""
        limits: dict[str, float | None] = {job.id: job.tr for job in queue.pending}
        limits.update((job.id, queue.limits.get(job.id)) for job in queue.running)
        of_user = cache(self.of_user)
        return {job: of_user(owner, limits[job]) for job, owner in queue.owners.items() if job in limits}

    def _followed(
        self, job: RunningJob, now: float, kind: tuple[float | None, str], *, own: bool
    ) -> _Followed:
        """Follow a running job. `kind`: its limit and owner, as far as the scheduler tells them."""
        known = self._running.get(job.id)
        if known is not None and not own:
            return known
        limit, owner = self._waiting.get(job.id, kind)
        if own or math.isinf(job.end) or limit is None or not 0 < limit < math.inf:
            limit = None
        return _Followed(limit, owner, job.end, now if known is None else known.seen)

    def _indexed(self) -> dict[tuple[str, int], tuple[float, ...]]:
        """A history is blended with two shares of all users, so that a few jobs do not decide alone."""
        if self._index is None:
            kinds: dict[tuple[str, int], list[float]] = defaultdict(list)
            for each in self._ran:
                if each.owner:
                    kinds[each.owner, 0].append(each.share)
                    if each.limit:
                        kinds[each.owner, each.limit].append(each.share)
            known = self.known
            usual = known[len(known) // 4], known[3 * len(known) // 4]
            self._index = {
                kind: tuple(sorted([*shares[-_OWN:], *usual]))
                for kind, shares in kinds.items()
                if len(shares) >= FEWEST
            }
        return self._index
