"""The tasks in the compiled kernel and those of the broker, side by side: after each call they agree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from adaptor.crafting.situation import Demand
from adaptor.scheduling.broker import Broker
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.grid_job import GridTerms
from adaptor_simulation.kernels import Array
from adaptor_simulation.tasks.broker_tasks import BrokerTasks
from adaptor_simulation.tasks.kernel_tasks import KernelTasks
from adaptor_simulation.tasks.protocol import SITE, Served, Tasks

Answer = TypeVar("Answer")

SHOWN = ("ended", "waiting", "last_end", "failed")


class BothTasks:
    """`Tasks`, and their board, that ask both and compare all that they show."""

    def __init__(self, runtimes: Array, terms: GridTerms, cluster: Cluster) -> None:
        self._kernel = KernelTasks(runtimes, terms, cluster)
        self._broker = BrokerTasks(runtimes, terms, cluster)
        self.board = self
        self.calls = 0

    def __getattr__(self, name: str) -> object:
        """Calls to both: the other questions of a step to a broker."""
        if name in SHOWN or not callable(getattr(Broker, name, None)):
            return getattr(self._kernel, name)
        return partial(self._tell, name)

    def _tell(self, name: str, *args: object) -> object:
        getattr(self._broker.board, name)(*args)
        return getattr(self._kernel, name)(*args)

    def _both(self, ask: Callable[[Tasks], Answer]) -> Answer:
        answer = ask(self._kernel)
        assert ask(self._broker) == answer
        return answer

    def _board(self, ask: Callable[[Broker], Answer]) -> Answer:
        return self._both(lambda tasks: ask(tasks.board))

    def _act(self, do: Callable[[Tasks], Answer]) -> Answer:
        answer = self._both(do)
        self.calls += 1
        assert self.calls < 20_000, "the bag never ends"
        self._both(lambda tasks: {name: getattr(tasks, name) for name in SHOWN})
        for demand in self.demands(SITE):
            self._board(lambda board, demand=demand: board.sharers(SITE, demand))
        self._board(lambda board: board.groups())
        for ask in (Broker.has_work_for, Broker.has_waiting, Broker.shapes):
            self._board(lambda board, name=ask.__name__: getattr(board, name)(SITE))
        return answer

    def demands(self, site: str, now: float | None = None) -> tuple[Demand, ...]:
        return self._board(lambda board: board.demands(site, now))

    def add_pilot(self, pilot, processors, started, deadline) -> None:
        self._act(lambda tasks: tasks.add_pilot(pilot, processors, started, deadline))

    def end_pilot(self, pilot: int, now: int) -> Served:
        return self._act(lambda tasks: tasks.end_pilot(pilot, now))

    def ahead(self, until: int) -> int:
        """The kernel runs on over ends of tasks that matter to nobody."""
        stop = self._kernel.ahead(until)
        assert self._broker.ahead(until) <= stop
        return stop

    def settle(self, now: int) -> bool:
        return self._act(lambda tasks: tasks.settle(now))

    def leave(self, now: int) -> dict[int, Served]:
        return self._act(lambda tasks: tasks.leave(now))
