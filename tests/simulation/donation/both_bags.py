"""The bag on the kernels and the bag on the scheduling core, side by side: after each call they agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from adaptor.crafting.situation import Demand, TaskTimes
from adaptor.donation.situation import Allocation, DonationRules
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.donation import kernels as k
from adaptor.simulation.donation.core_bag import CoreBag
from adaptor.simulation.donation.kernel_bag import KernelBag
from adaptor.simulation.donation.processors import Processors
from adaptor.simulation.grid_job import GridTerms
from adaptor.simulation.kernels import Array

Answer = TypeVar("Answer")

ROWS = (k.OWNER, k.SINCE, k.USED, k.DEADLINE, k.TASK, k.START, k.END)
NUMBERS = ("done", "failed", "last_end", "waiting")


class BothBags:
    """A `DonationBag` that asks both and compares all that they show, and which task each processor runs."""

    def __init__(
        self,
        place: Processors[Simulation],
        runtimes: Array,
        terms: GridTerms,
        rules: DonationRules,
        allocation: Allocation,
    ) -> None:
        self._places = place, place.fork(place.cluster)
        self._kernel = KernelBag(self._places[0], runtimes, terms, rules, allocation)
        self._core = CoreBag(self._places[1], runtimes, terms, rules, allocation)
        self.total = len(runtimes)
        self._formal = allocation != "transparent"

    def __getattr__(self, name: str) -> object:
        assert name in NUMBERS, name
        return getattr(self._kernel, name)

    def _both(self, asked: Callable[[KernelBag | CoreBag], Answer]) -> Answer:
        answer = asked(self._kernel)
        assert asked(self._core) == answer
        return answer

    def _same(self) -> None:
        now = self._places[0].cluster.now
        self._both(lambda bag: bag.figures(now))
        for name in NUMBERS:
            self._both(lambda bag, name=name: getattr(bag, name))  # type: ignore[misc]
        if self._formal and self._kernel.waiting:
            self._both(_without_times)
        kernel, core = (place.lot for place in self._places)
        for row in ROWS:
            assert kernel[row].tolist() == core[row].tolist(), f"row {row}"
        used = kernel[k.USED] >= 0
        assert kernel[k.UNTIL, used].tolist() == core[k.UNTIL, used].tolist()

    def figures(self, now: int) -> dict[str, int]:
        return self._both(lambda bag: bag.figures(now))

    def demand(self) -> Demand:
        return self._both(_without_times)

    def expire(self) -> None:
        self._both(lambda bag: bag.expire())
        self._same()

    def start(self, job: int, deadline: int | None) -> None:
        self._both(lambda bag: bag.start(job, deadline))
        self._same()

    def end(self, job: int) -> None:
        self._both(lambda bag: bag.end(job))
        self._same()

    def expect(self, start: int | None) -> None:
        self._both(lambda bag: bag.expect(start))

    def use_nodes(self) -> None:
        self._both(lambda bag: bag.use_nodes())
        self._same()

    def fill(self) -> None:
        self._both(lambda bag: bag.fill())
        self._same()

    def run(self, until: int) -> int:
        return self._both(lambda bag: bag.run(until))

    def learn(self) -> bool:
        changed = self._both(lambda bag: bag.learn()) if self._kernel.waiting else self._learn_at_the_end()
        self._same()
        return changed

    def _learn_at_the_end(self) -> bool:
        """The core forgets a bag with its last task, and the kernels do not: nobody asks any more."""
        self._core.learn()
        return self._kernel.learn()


def _without_times(bag: KernelBag | CoreBag) -> Demand:
    """Donated nodes are replayed beside requests by static and adaptive, which do not look at them."""
    return msgspec.structs.replace(bag.demand(), times=TaskTimes())
