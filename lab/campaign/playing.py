"""Plays one scene: the bag runs, the faults come as the plan says, and are mended again."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import psutil

from lab.campaign.faults import CATALOG, NoVictimError
from lab.campaign.plan import Plan, PlannedFault
from lab.campaign.world import World
from tests.clusters.throwaway import ClusterError

PAUSE = 0.3
BETWEEN = 1.5
"""Seconds between two faults, at least."""
TOGETHER = 4
"""Faults that are open at the same time, at most."""
STUCK = 500.0
"""Seconds without an effect, and without an open fault, after which a bag hangs."""
HELP_AFTER = 12.0
"""Seconds without an effect after which the owner of a bag that is paused gives it credits."""


@dataclass
class Played:
    """Outcome of the plan."""

    injected: dict[str, int] = field(default_factory=dict)
    survived: dict[str, int] = field(default_factory=dict)
    """Faults among these after whose mending the bag went on."""
    left_out: list[str] = field(default_factory=list)
    """Faults that found no victim until the bag was through."""
    stuck: str = ""


@dataclass
class _Open:
    fault: PlannedFault
    act: AbstractContextManager[str]
    until: float


class Play:
    """One run of a plan. Everything happens in one thread, which the clusters live as long as."""

    def __init__(
        self, plan: Plan, world: World, say: Callable[[str], None], options: tuple[str, ...]
    ) -> None:
        self.plan = plan
        self._world = world
        self._say = say
        self._options = options
        self._pending = list(plan.faults)
        self._open: list[_Open] = []
        self._mended: list[tuple[str, int]] = []
        """Kinds of mended faults, with what was through then: not known yet whether the bag goes on."""
        self._next = 0.0
        self._through, self._since = 0, time.monotonic()
        self._helped = 0.0
        self.played = Played()

    def run(self) -> Played:
        """Until all faults were mended and the bag has ended, or hangs."""
        world = self._world
        world.lab.bag(world.effects.bag(self.plan.tasks))
        world.lab.submit("tasks.bag", "--output", world.lab.root / "output", *self._options)
        world.daemon_runs = True
        try:
            while (self._pending or self._open or world.chores) and not self.played.stuck:
                self._turn()
                time.sleep(PAUSE)
        finally:
            for each in list(self._open):
                self._mend(each)
        self._wait_for_the_bag()
        if not self.played.stuck:
            self._count_survived(everything=True)
        return self.played

    def _turn(self) -> None:
        self._world.tend()
        self._look()
        now = time.monotonic()
        for each in [each for each in self._open if each.until <= now]:
            self._mend(each)
        if now >= self._next and len(self._open) < TOGETHER:
            self._inject()

    def _look(self) -> None:
        """Look how far the bag is, and whether it moves."""
        through = self._world.effects.through()
        now = time.monotonic()
        if through > self._through or self._open:
            self._since = now
        self._through = max(through, self._through)
        self._count_survived()
        if through >= len(self.plan.tasks):  # what is left finds no victim any more
            self.played.left_out += [fault.kind for fault in self._pending]
            self._pending = []
        elif now - self._since > STUCK:
            self.played.stuck = (
                f"no task has ended for {STUCK:.0f} s, {through} of {len(self.plan.tasks)} are through"
            )
        elif self._options and now - max(self._since, self._helped) > HELP_AFTER:
            self._helped = now
            self._raise_budget(room=60)

    def _raise_budget(self, room: float) -> None:
        """Raise the budget, unless the bag has just ended or the daemon is down."""
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self._world.set_budget(room)

    def _inject(self) -> None:
        """The first fault whose time has come and that has a victim."""
        reached = self._through / len(self.plan.tasks)
        for fault in self._pending:
            if fault.at > reached:
                return
            act = CATALOG[fault.kind].act(self._world, fault.draw)
            try:
                whom = act.__enter__()
            except (NoVictimError, psutil.Error, ClusterError, subprocess.TimeoutExpired, AssertionError):
                continue
            self._pending.remove(fault)
            self._next = time.monotonic() + BETWEEN
            self._open.append(_Open(fault, act, time.monotonic() + fault.lasts))
            count = self.played.injected
            count[fault.kind] = count.get(fault.kind, 0) + 1
            lasts = f" for {fault.lasts:g} s" if fault.lasts else ""
            self._say(f"{reached:6.1%}  {fault.kind}{lasts}: {whom}")
            return

    def _mend(self, each: _Open) -> None:
        self._open.remove(each)
        each.act.__exit__(None, None, None)
        self._mended.append((each.fault.kind, self._through))

    def _count_survived(self, everything: bool = False) -> None:
        """A fault is survived when a task has ended after it was mended, or the bag has ended well."""
        over = [kind for kind, through in self._mended if everything or self._through > through]
        self._mended = [each for each in self._mended if not everything and self._through <= each[1]]
        for kind in over:
            self.played.survived[kind] = self.played.survived.get(kind, 0) + 1

    def _wait_for_the_bag(self) -> None:
        """The last tasks run without a fault."""
        deadline = time.monotonic() + STUCK
        if self._options:
            self._raise_budget(room=1000)
        while not self.played.stuck:
            self._world.tend()
            through = self._world.effects.through()
            if through > self._through:
                self._through, deadline = through, time.monotonic() + STUCK
            with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
                if self._world.lab.status()["state"] in ("done", "failed"):
                    return
            if time.monotonic() > deadline:
                self.played.stuck = f"the bag does not end, {through} of {len(self.plan.tasks)} are through"
            time.sleep(3 * PAUSE)
