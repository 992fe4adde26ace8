"""The order of tests that shows which are needed: each adds branches to those before it."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping

import msgspec

from lab.mutants.mutations import Mutant


class Reach(msgspec.Struct):
    """By test function that passed: the seconds of its cases, and the branches, as file:line:line."""

    seconds: dict[str, float]
    branches: dict[str, list[str]]
    properties: list[str]
    """Test functions that hypothesis gives examples."""


def function_of(nodeid: str) -> str:
    """The id of the function of a test, without the arguments of the case."""
    return nodeid.split("[")[0]


def cover(reach: Reach, lines: Mapping[str, int]) -> list[str]:
    """Test functions that reach all branches together; without one of the last, a branch is missed.

    Properties come first: they stay for what they say. Then always the function with the most new branches
    for its cost: a line costs as much as a hundredth of a second.
    """
    chosen = [name for name in reach.properties if reach.branches.get(name)]
    reached: set[str] = set().union(*(reach.branches[name] for name in chosen))

    def gain(name: str) -> tuple[float, str]:
        cost = lines.get(name, 10) + 100 * reach.seconds[name]
        return -len(set(reach.branches[name]) - reached) / cost, name

    waiting = [gain(name) for name in reach.branches if name not in set(chosen)]
    heapq.heapify(waiting)
    while waiting and waiting[0][0] < 0:
        _, name = heapq.heappop(waiting)
        now = gain(name)
        if waiting and now > waiting[0]:  # what it would add has shrunk since
            heapq.heappush(waiting, now)
        elif now[0] < 0:
            chosen.append(name)
            reached |= set(reach.branches[name])
    return chosen


class Lines:
    """Which tests reach which lines."""

    def __init__(self, reach: Reach) -> None:
        self._by_file: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for name, branches in reach.branches.items():
            for branch in branches:
                file, before, after = branch.rsplit(":", 2)
                self._by_file[file][name] |= {int(before), int(after)}

    def reaching(self, file: str, mutant: Mutant) -> set[str]:
        """Tests that run the statement of `mutant`; if an import does, all that reach the file."""
        lines = set(range(mutant.statement, mutant.line + 1))
        if mutant.at_import:
            return set(self._by_file[file])
        return {name for name, reached in self._by_file[file].items() if not reached.isdisjoint(lines)}
