"""One step of the donation at a site: which donated nodes to use and which to leave. Pure.

It uses as many nodes as are idle now and until a useful time from now, for tasks that are likely to
finish there, within the rules (De Rose §3: "priority to local users"). What a local job wants is given
back at once, whatever runs there. With `choose: all` it uses every idle node, as the paper does.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from adaptor.donation.fitting import closes, demanded_probability, room, slots_on
from adaptor.donation.idleness import Hazard
from adaptor.donation.situation import (
    DonatedUse,
    DonationDecision,
    DonationDemand,
    DonationState,
    LeaveNodes,
    NodeUse,
    NodeView,
    UseNodes,
    UseNoMore,
)
from adaptor.units import counted, format_duration


def decide(view: DonationState, hazard: Hazard) -> list[DonationDecision]:
    """Decisions for now: first the nodes to leave, then those to use, then why no more are used.

    Of nodes that would do, the step uses those that stay idle for the longest: planned last, idle for
    the longest, then the last by position (schedulers fill nodes from the front). Of used nodes that are
    too many, it leaves those that were taken into use last, where the least work is lost.

    Args:
        hazard: of this site's nodes, from its `IdleLearner`.
    """
    if view.nodes is None:
        waits = any(demand.waiting for demand in view.demands if demand.allocation != "explicit")
        return [UseNoMore("the scheduler does not answer")] if waits else []
    return _Step(view, view.nodes, hazard).decisions()


_CLOSED = "outside the hours in which idle nodes may be used"


class _Step:
    def __init__(self, view: DonationState, nodes: Sequence[NodeView], hazard: Hazard) -> None:
        self._view, self._rules, self._now, self._hazard = view, view.rules, view.now, hazard
        self._closes = closes(view.rules.hours, view.now, view.midnight)
        self._demands = [
            demand for demand in view.demands if demand.waiting and demand.allocation != "explicit"
        ]
        self._leave: dict[str, list[str]] = defaultdict(list)  # names of nodes to leave, by the reason
        self._used: list[NodeView] = []
        self._idle: list[tuple[float, float, int, NodeView]] = []  # the best to use comes first
        self._room: dict[float, dict[float, float]] = defaultdict(dict)
        """Seconds of the longest task by probability, and by the instants since which nodes are idle."""
        self._avoided = [node.avoided for node in nodes if node.avoided]
        closed = self._closes <= view.now
        for position, node in enumerate(nodes):
            if node.donated is not None:
                if why := self._why_leave(node, node.donated, closed=closed):
                    self._leave[why].append(node.name)
                else:
                    self._used.append(node)
            elif node.use is NodeUse.IDLE:
                self._idle.append((-node.planned, node.since, -position, node))

    def _why_leave(self, node: NodeView, use: DonatedUse, *, closed: bool) -> str:
        """Why a used node is left; empty: it is not."""
        if node.use is NodeUse.TAKEN:
            return "a local job takes it"
        if node.use is NodeUse.AWAY:
            return "down, drained, reserved or unknown to the scheduler"
        if closed:
            return _CLOSED
        fits = use.busy or (
            self._has_memory(node)
            and any(
                demand.task.processors <= node.processors and self._fits(node, demand)
                for demand in self._demands
            )
        )
        return "" if fits else "no task is left that may run there"

    def decisions(self) -> list[DonationDecision]:
        self._trim()
        uses, why_not = self._use()
        found: list[DonationDecision] = [LeaveNodes(tuple(nodes), why) for why, nodes in self._leave.items()]
        return [*found, *uses, *([UseNoMore(why_not)] if why_not else [])]

    def _trim(self) -> None:
        """Leave what exceeds max_nodes, and what the reserve lacks."""
        most, reserve = self._rules.max_nodes, self._rules.reserve_nodes
        over = len(self._used) - most if most is not None else 0
        short = reserve - len(self._idle)
        if max(over, short) > 0:
            self._used.sort(key=lambda node: node.donated.since if node.donated else 0.0)
        for count, why in ((over, f"max_nodes is {most}"), (short, f"reserve_nodes is {reserve}")):
            for _ in range(min(count, len(self._used))):
                self._leave[why].append(self._used.pop().name)

    def _use(self) -> tuple[list[UseNodes], str]:
        """The nodes to use, and why there are not more although tasks wait."""
        if not self._demands:
            return [], ""
        if self._closes <= self._now:
            return [], _CLOSED
        useful = sorted(
            place
            for place in self._idle  # nodes that stay ours long enough, by the plan and the hours
            if self._rules.choose == "all" or self._end(place[-1]) - self._now > self._rules.useful_time
        )
        allowed = len(self._idle) - self._rules.reserve_nodes
        if self._rules.max_nodes is not None:
            allowed = min(allowed, self._rules.max_nodes - len(self._used))
        nodes = [place[-1] for place in useful]
        chosen, left = self._choose(nodes, allowed)
        return self._uses(chosen), self._why_not(len(chosen), nodes, allowed) if left > 0 else ""

    def _choose(self, nodes: list[NodeView], allowed: int) -> tuple[list[NodeView], int]:
        """The nodes on which waiting tasks fit, as many as they need, and how many tasks are left."""
        left = [demand.waiting for demand in self._demands]
        for node in self._used:
            # Idle processors of nodes in use come first.
            if node.donated is not None and node.donated.busy < node.processors:
                self._give(node, left, node.donated.busy)
        waiting = sum(left)
        chosen: list[NodeView] = []
        for node in nodes:
            if waiting == 0 or len(chosen) >= allowed:
                break
            tasks = self._give(node, left, 0)
            if tasks:
                waiting -= tasks
                chosen.append(node)
        return chosen, waiting

    def _give(self, node: NodeView, left: list[int], busy: int) -> int:
        """Hand tasks to a node; how many it takes."""
        taken = 0
        free = node.processors - busy
        for index, demand in enumerate(self._demands):
            if not left[index]:
                continue
            slots = slots_on(node, free, demand.task)
            if slots > 0 and self._fits(node, demand):
                count = min(slots, left[index])
                left[index] -= count
                free -= count * demand.task.processors
                taken += count
        return taken

    def _has_memory(self, node: NodeView) -> bool:
        """Whether the node has the memory of any task, also of one that does not fit into its time."""
        return node.memory is None or any(
            (demand.task.memory or 0) <= node.memory for demand in self._demands
        )

    def _fits(self, node: NodeView, demand: DonationDemand) -> bool:
        """Whether the shortest task of a demand ends before the node's time does, and likely in idle time."""
        until_end = self._end(node) - self._now
        if until_end <= 0 or demand.needs > until_end:
            return False
        least = demanded_probability(demand, self._rules, self._now)
        known = self._room[least]
        longest = known.get(node.since)
        if longest is None:  # nodes come free together, when a job ends
            longest = known[node.since] = room(self._hazard, self._now - node.since, math.inf, least)
        return longest > 0 and demand.needs <= longest

    def _end(self, node: NodeView) -> float:
        """Epoch seconds at which the node's time ends: with the hours, or when a job is planned there."""
        return self._closes if self._rules.choose == "all" else min(node.planned, self._closes)

    def _uses(self, nodes: list[NodeView]) -> list[UseNodes]:
        """One decision for all nodes that are used until the same time."""
        if not nodes:
            return []
        by_end: dict[float, list[str]] = defaultdict(list)
        for node in nodes:
            by_end[self._end(node)].append(node.name)
        age = self._now - max(node.since for node in nodes)
        half = self._hazard.longest(age, 0.5)
        why = (
            f"of those idle for {format_duration(age)} half stay so for {format_duration(half)} more; "
            f"{counted(sum(demand.waiting for demand in self._demands), 'task')} may run on donated nodes"
        )
        return [
            UseNodes(tuple(names), end, f"{counted(len(names), 'idle node')}, {self._how_long(end)}; {why}")
            for end, names in by_end.items()
        ]

    def _how_long(self, end: float) -> str:
        if not math.isinf(end):
            return f"for {format_duration(end - self._now)}"
        return "all are used (choose: all)" if self._rules.choose == "all" else "nothing is planned there"

    def _why_not(self, chosen: int, nodes: list[NodeView], allowed: int) -> str:
        shortest, most = min(demand.needs for demand in self._demands), self._rules.max_nodes
        useful, narrowest = len(nodes), min(demand.task.processors for demand in self._demands)
        if chosen >= allowed and chosen < useful:
            full = most is not None and len(self._used) + chosen >= most
            return f"max_nodes is {most}" if full else f"reserve_nodes is {self._rules.reserve_nodes}"
        if nodes and not chosen and max(node.processors for node in nodes) < narrowest:
            return f"a task needs {counted(narrowest, 'processor')}, and no idle node has that many"
        if nodes and not chosen and not any(map(self._has_memory, nodes)):
            return "no idle node has the memory that a task needs"
        if chosen < useful:
            return (
                f"the shortest waiting task needs {format_duration(shortest)}: too long to finish on "
                f"{counted(useful - chosen, 'idle node')} with enough probability"
            )
        soon = len(self._idle) - useful
        if self._avoided:
            more = f"; {soon} planned within {format_duration(self._rules.useful_time)}" if soon else ""
            return f"{counted(len(self._avoided), 'idle node')} left alone for now: {self._avoided[0]}{more}"
        return (
            f"no other idle node is free for {format_duration(self._rules.useful_time)} (useful_time); "
            f"{soon} planned sooner"
        )
