"""Tasks that wait for other tasks and bags: what their ends mean for those that wait."""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.model import TaskState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import SchedulingState


def look_at(state: SchedulingState, bag: Bag, tasks: Iterable[int]) -> None:
    """Decide on blocked tasks by the present states of their parents, tasks and bags."""
    for parent in bag.spoilers:
        _end_all_with(state, bag, parent)
    for task in tasks:
        if bag.state(task) is not TaskState.BLOCKED:
            continue
        spoiler = bag.dependencies.spoiler(task, bag.state)
        if spoiler is not None:
            _end_with(state, bag, task, spoiler)
        else:
            bag.dependencies.watch(task, bag.state)
            _unblock_if_ready(state, bag, task)
    state.forget_if_over(bag)


def await_again(state: SchedulingState, retried: Bag) -> None:
    """An ended bag goes on: what waits for it, and what is appended after it, is decided by its next end.

    Tasks that its last end has let go stay as they are.
    """
    for bag in state.bags.values():
        if retried.id in (*bag.spec.after, *bag.spec.after_any):
            bag.spoilers.pop(retried.id, None)
            bag.awaits.add(retried.id)
            state.followers.setdefault(retried.id, set()).add(bag.id)


def await_retried(state: SchedulingState, bag: Bag) -> None:
    """Let a bag wait for those before it that have been retried since it was read."""
    for parent in bag.spoilers.keys() & state.bags.keys():
        if not state.bags[parent].ended:
            del bag.spoilers[parent]
            bag.awaits.add(parent)


def follow_ends(state: SchedulingState) -> bool:
    """Take in the ends of tasks and bags since the last call; whether that made any task ready."""
    ready = False
    while True:
        while state.ended_parents:
            bag, parent = state.ended_parents.popleft()
            ready = _follow_task(state, bag, parent) or ready
        ended = [bag for bag in state.touched.values() if bag.ended and bag.id in state.followers]
        if not ended:
            return ready
        for bag in ended:
            ready = _follow_bag(state, bag) or ready


def _follow_task(state: SchedulingState, bag: Bag, parent: int) -> bool:
    ready = False
    if not bag.state(parent).ended:  # its user has put it back since
        return False
    for child in bag.dependencies.ended(parent):
        if bag.state(child) is not TaskState.BLOCKED:
            continue
        if bag.dependencies.spoiler(child, bag.state, parent) is not None:
            _end_with(state, bag, child, parent)
        else:
            ready = _unblock_if_ready(state, bag, child) or ready
    state.forget_if_over(bag)
    return ready


def _follow_bag(state: SchedulingState, ended: Bag) -> bool:
    """A bag has ended: those that run after it go on, or end too."""
    ready = False
    failed, cancelled = ended.count(TaskState.FAILED), ended.count(TaskState.CANCELLED)
    for id in sorted(state.followers.pop(ended.id)):
        bag = state.bags.get(id)
        if bag is None:
            continue
        bag.awaits.discard(ended.id)
        if ended.id in bag.spec.after and (failed or cancelled):
            bag.spoilers[ended.id] = TaskState.FAILED if failed else TaskState.CANCELLED
            _end_all_with(state, bag, ended.id)
        elif not bag.gated:
            for task in bag.blocked:
                ready = _unblock_if_ready(state, bag, task) or ready
        state.forget_if_over(bag)
    return ready


def _end_all_with(state: SchedulingState, bag: Bag, parent: int) -> None:
    end = bag.spoilers[parent]
    for task in bag.blocked:
        bag.end(task, end)
        state.note(bag, task, error=f"it runs after bag {parent}, which {END_WORDS[end]}")


def _unblock_if_ready(state: SchedulingState, bag: Bag, task: int) -> bool:
    if bag.gated or not bag.dependencies.met(task):
        return False
    bag.unblock(task)
    state.note(bag, task)
    return True


def _end_with(state: SchedulingState, bag: Bag, task: int, parent: int) -> None:
    """End a task whose parent has no result, as the parent ended; the reason names the first such parent."""
    end = bag.state(parent)
    root = state.roots.get((bag.id, parent), parent)
    if bag.dependencies.has_children(task):
        state.roots[bag.id, task] = root
    bag.end(task, end)
    state.note(bag, task, error=f"it runs after task {root}, which {END_WORDS[end]}")


END_WORDS = {TaskState.FAILED: "failed", TaskState.CANCELLED: "was cancelled"}
