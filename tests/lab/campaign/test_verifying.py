"""What the campaign looks for is found where it is, and only there."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lab.campaign.effects import Effect
from lab.campaign.plan import Plan, PlannedTask
from lab.campaign.verifying import Told, Wrong, check_bag, forgotten

PLAN = Plan(
    seed=1,
    scene="plain",
    tasks=(PlannedTask(1), PlannedTask(1, failures=1, code=7), PlannedTask(1, failures=4, code=3)),
    faults=(),
)


def attempt(task: int, number: int, outcome: str, code: int | None = 0, signal: int | None = None) -> Any:
    return {
        "task": task,
        "number": number,
        "outcome": outcome,
        "exit_code": code,
        "signal": signal,
        "error": None,
    }


def result(task: int, state: str, attempts: int, retries: int) -> Any:
    return {"task": task, "state": state, "attempts": attempts, "replicas": 0, "retries": retries}


@dataclass
class Bag:
    """One that went well: task 0 was lost once, task 1 failed once, task 2 failed for good."""

    results: list[Any] = field(
        default_factory=lambda: [result(0, "done", 2, 0), result(1, "done", 2, 1), result(2, "failed", 4, 3)]
    )
    attempts: list[Any] = field(
        default_factory=lambda: [
            attempt(0, 1, "lost", None),
            attempt(0, 2, "done"),
            attempt(1, 1, "failed", 7),
            attempt(1, 2, "done"),
            *(attempt(2, number, "failed", 3) for number in (1, 2, 3, 4)),
        ]
    )
    effects: list[Effect] = field(
        default_factory=lambda: [
            *(Effect("begin", task, number, 1) for task in (0, 1) for number in (1, 2)),
            *(Effect("begin", 2, number, 1) for number in (1, 2, 3, 4)),
            Effect("done", 0, 2, 1),
            Effect("fail", 1, 1, 1),
            Effect("done", 1, 2, 1),
            *(Effect("fail", 2, number, 1) for number in (1, 2, 3, 4)),
        ]
    )
    killed: set[tuple[int, int]] = field(default_factory=set)

    def wrong(self) -> set[Wrong]:
        told = Told(self.results, self.attempts)
        return {finding.wrong for finding in check_bag(PLAN, told, self.effects, self.killed)}


def test_a_bag_that_went_well_has_no_findings() -> None:
    assert Bag().wrong() == set()


def test_a_task_that_was_killed_by_a_fault_is_charged() -> None:
    bag = Bag()
    bag.attempts[0] = attempt(0, 1, "failed", None, 9)
    bag.results[0]["retries"] = 1
    assert bag.wrong() == {Wrong.CHARGED}
    bag.killed = {(0, 1)}
    assert bag.wrong() == set()


def test_a_replica_that_has_failed_is_a_failure_and_no_retry() -> None:
    bag = Bag()
    bag.results[2].update(attempts=5, replicas=1)
    bag.attempts.append(attempt(2, 5, "superseded", None, 15))
    bag.effects.append(Effect("begin", 2, 5, 1))
    assert bag.wrong() == set()


def test_what_a_disk_may_have_forgotten_is_not_complained_of() -> None:
    """Only attempts that began or ended then: the first of task 0 runs again, under the same number."""
    bag = Bag()
    bag.effects = [replace(effect, at=100 + 50 * effect.task) for effect in bag.effects]
    bag.effects.append(bag.effects[0])
    assert bag.wrong() == {Wrong.DOUBLED}
    for cuts, wrong in (([(101.0, 110.0)], set()), ([(140.0, 145.0)], {Wrong.DOUBLED})):
        unsure = forgotten(bag.effects, cuts)
        told = Told(bag.results, bag.attempts)
        assert {each.wrong for each in check_bag(PLAN, told, bag.effects, set(), unsure)} == wrong


def _set(where: str, row: int, **values: Any) -> Callable[[Bag], None]:
    return lambda bag: getattr(bag, where)[row].update(values)


def _remove(where: str, row: int) -> Callable[[Bag], None]:
    return lambda bag: getattr(bag, where).pop(row)


def _repeat(where: str, row: int) -> Callable[[Bag], None]:
    return lambda bag: getattr(bag, where).append(deepcopy(getattr(bag, where)[row]))


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (_remove("results", 0), Wrong.LOST),
        (_set("results", 0, state="running"), Wrong.LOST),
        (_set("attempts", 0, outcome="done"), Wrong.LOST),  # done, but the execution had no effect
        (_remove("effects", 8), Wrong.LOST),
        (_repeat("results", 0), Wrong.DOUBLED),
        (_set("attempts", 2, outcome="done"), Wrong.DOUBLED),
        (_repeat("effects", 0), Wrong.DOUBLED),  # the same attempt was executed twice
        (_remove("attempts", 0), Wrong.OTHER),
        (_set("results", 0, retries=1), Wrong.CHARGED),
        (_set("results", 1, retries=0), Wrong.CHARGED),
        (_set("attempts", 0, outcome="failed"), Wrong.CHARGED),
        (_set("attempts", 2, exit_code=1), Wrong.CHARGED),
        (_set("results", 1, state="failed"), Wrong.CHARGED),
        (_set("results", 2, state="done"), Wrong.CHARGED),
    ],
)
def test_each_kind_of_damage_is_found(damage: Callable[[Bag], None], found: Wrong) -> None:
    bag = Bag()
    damage(bag)
    assert found in bag.wrong()
