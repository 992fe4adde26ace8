"""Compares what the adaptor says of a bag with what its tasks did. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lab.campaign.effects import Effect
from lab.campaign.plan import RETRIES, Plan

Execution = tuple[int, int]
"""Task and attempt."""
KILLED = 9


class Wrong(Enum):
    """Events that must not happen, as the last lines of a campaign count them."""

    LOST = "lost"
    DOUBLED = "doubled"
    LEAKED = "leaked"
    CHARGED = "wrong charges"
    LIMIT = "limits exceeded"
    TOUCHED = "jobs of the user's own touched"
    OTHER = "other findings"


@dataclass(frozen=True)
class Finding:
    wrong: Wrong
    text: str


@dataclass(frozen=True)
class Told:
    """Reports of the adaptor on a bag."""

    results: Sequence[dict[str, Any]]
    """`adaptor results --json`."""
    attempts: Sequence[dict[str, Any]]
    """The rows of the journal."""


UNSAFE = 3.0
"""Seconds for which a result may not have reached the disk: the daemon's one, and more on a busy machine."""


def check_bag(
    plan: Plan,
    told: Told,
    effects: Iterable[Effect],
    killed: set[Execution],
    forgotten: Collection[Execution] = (),
) -> list[Finding]:
    """Findings on a bag.

    Args:
        killed: executions whose process a fault has killed, which is a failure of the task's own.
        forgotten: executions that may have come and gone without a trace in the journal.
    """
    effects = list(effects)
    sure = [effect for effect in effects if (effect.task, effect.attempt) not in forgotten]
    return [
        *_one_result_each(plan, told),
        *_results_have_effects(told, effects),
        *_no_execution_twice(sure, told),
        *_failures_are_the_tasks_own(plan, told, effects, killed, forgotten),
    ]


def forgotten(effects: Iterable[Effect], cuts: Sequence[tuple[float, float]]) -> set[Execution]:
    """The executions that began or ended while a disk may have forgotten what the daemon wrote of them."""
    return {
        (effect.task, effect.attempt)
        for effect in effects
        if any(cut - UNSAFE <= effect.at <= again + UNSAFE for cut, again in cuts)
    }


def _one_result_each(plan: Plan, told: Told) -> Iterable[Finding]:
    counted = Counter(row["task"] for row in told.results)
    for task in range(len(plan.tasks)):
        if counted[task] != 1:
            wrong = Wrong.DOUBLED if counted[task] else Wrong.LOST
            yield Finding(wrong, f"task {task} has {counted[task]} results")
    for row in told.results:
        if row["task"] not in range(len(plan.tasks)):
            yield Finding(Wrong.OTHER, f"task {row['task']} was never submitted")
        if row["state"] not in ("done", "failed"):
            yield Finding(Wrong.LOST, f"task {row['task']} is {row['state']} in the end")


def _results_have_effects(told: Told, effects: Sequence[Effect]) -> Iterable[Finding]:
    """A task is done if, and only if, the attempt that counts did what it is for."""
    finished = {(effect.task, effect.attempt) for effect in effects if effect.word == "done"}
    done = {(row["task"], row["number"]) for row in told.attempts if row["outcome"] == "done"}
    counts = Counter(task for task, _ in done)
    for row in told.results:
        task = row["task"]
        if row["state"] == "done" and counts[task] != 1:
            yield Finding(Wrong.DOUBLED, f"task {task} is done by {counts[task]} attempts")
        if row["state"] != "done" and counts[task]:
            yield Finding(Wrong.LOST, f"task {task} is {row['state']}, but an attempt of it is done")
    for task, attempt in sorted(done - finished):
        yield Finding(Wrong.LOST, f"attempt {attempt} of task {task} counts as done without an effect")


def _no_execution_twice(effects: Sequence[Effect], told: Told) -> Iterable[Finding]:
    known = {(row["task"], row["number"]) for row in told.attempts}
    begun = Counter((effect.task, effect.attempt) for effect in effects if effect.word == "begin")
    for (task, attempt), times in sorted(begun.items()):
        if times > 1:
            yield Finding(Wrong.DOUBLED, f"attempt {attempt} of task {task} was executed {times} times")
        if (task, attempt) not in known:
            yield Finding(Wrong.OTHER, f"attempt {attempt} of task {task} ran, and the journal lacks it")


def _failures_are_the_tasks_own(
    plan: Plan,
    told: Told,
    effects: Sequence[Effect],
    killed: set[Execution],
    forgotten: Collection[Execution],
) -> Iterable[Finding]:
    failures = {(effect.task, effect.attempt) for effect in effects if effect.word == "fail"}
    failed: Counter[int] = Counter()
    for row in told.attempts:
        execution = row["task"], row["number"]
        if row["outcome"] == "done" and execution in failures and execution not in forgotten:
            yield Finding(Wrong.CHARGED, f"attempt {execution[1]} of task {execution[0]} failed, and is done")
        if row["outcome"] == "failed":
            failed[row["task"]] += 1
            yield from _cause(plan, row, execution in failures, execution in killed)
    for row in told.results:
        charged, own = row["retries"], failed[row["task"]]
        # The last failure of all is not tried again, and a replica is no retry.
        if charged != min(own, row["attempts"] - row["replicas"] - 1):
            yield Finding(
                Wrong.CHARGED, f"task {row['task']} is charged {charged} retries for {own} failures"
            )
        if (row["state"] == "failed") != (own > RETRIES):
            yield Finding(Wrong.CHARGED, f"task {row['task']} is {row['state']} after {own} failures")


def _cause(plan: Plan, row: dict[str, Any], failed: bool, killed: bool) -> Iterable[Finding]:
    """Check that a charged attempt failed as its task does, or was killed by us."""
    as_planned = failed and row["exit_code"] == plan.tasks[row["task"]].code
    if not as_planned and not (killed and row["signal"] == KILLED):
        yield Finding(
            Wrong.CHARGED,
            f"attempt {row['number']} of task {row['task']} is charged without a failure of its own: "
            f"exit code {row['exit_code']}, signal {row['signal']}, {row['error']}",
        )
