"""Dependencies of tasks of a bag on others of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from adaptor.model import TaskState

StateOf = Callable[[int], TaskState]


class Links(msgspec.Struct, frozen=True, array_like=True):
    """The parents of one task, all of the same bag."""

    after: tuple[int, ...] = ()
    """Tasks that must be done before it runs; it fails or is cancelled with them."""
    after_any: tuple[int, ...] = ()
    """Tasks that must have ended, in any way, before it runs."""

    def __bool__(self) -> bool:
        return bool(self.after or self.after_any)

    @property
    def parents(self) -> set[int]:
        return {*self.after, *self.after_any}


NO_LINKS = Links()
_WITHOUT = (TaskState.FAILED, TaskState.CANCELLED)  # the ends of a task without a result


class Dependencies:
    """The links of a bag's tasks, and for each blocked task how many of its parents have not ended."""

    def __init__(self) -> None:
        self._links: dict[int, Links] = {}
        self._children: dict[int, set[int]] = {}  # by parent that has not ended: the tasks that wait for it
        self._unmet: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._links)

    def add(self, task: int, links: Links) -> None:
        if links:
            self._links[task] = links

    def of(self, task: int) -> Links:
        return self._links.get(task, NO_LINKS)

    def watch(self, task: int, state: StateOf) -> None:
        """Count the parents of a blocked task that have not ended, from their present states."""
        unended = [parent for parent in self.of(task).parents if not state(parent).ended]
        self._unmet[task] = len(unended)
        for parent in unended:
            self._children.setdefault(parent, set()).add(task)

    def has_children(self, task: int) -> bool:
        """Whether tasks wait for this one."""
        return task in self._children

    def ended(self, parent: int) -> list[int]:
        """Count the end of a parent; the blocked tasks that waited for it, in the order of their numbers."""
        children = sorted(self._children.pop(parent, set()) & self._unmet.keys())
        for child in children:
            self._unmet[child] -= 1
        return children

    def met(self, task: int) -> bool:
        """Whether all parents of a watched task have ended."""
        return not self._unmet.get(task, 0)

    def forget(self, task: int) -> None:
        """Note that a task is no longer blocked."""
        self._unmet.pop(task, None)

    def spoiler(self, task: int, state: StateOf, ended: int | None = None) -> int | None:
        """A parent without which the task cannot run: it failed or was cancelled; None: there is none.

        `ended`: the only parent that has ended since the last look; None: look at all.
        """
        if ended is not None:
            return ended if state(ended) in _WITHOUT and ended in self.of(task).after else None
        return next((parent for parent in self.of(task).after if state(parent) in _WITHOUT), None)

    def may_run_again(self, tasks: Iterable[int], state: StateOf) -> list[int]:
        """Ended tasks among these that could run if all of them were put back."""
        chosen = list(tasks)
        while True:
            again = set(chosen)
            kept = [
                task
                for task in chosen
                if all(
                    parent in again or state(parent) is TaskState.DONE or not state(parent).ended
                    for parent in self.of(task).after
                )
            ]
            if len(kept) == len(chosen):
                return kept
            chosen = kept

    def waits(self, task: int, state: StateOf) -> bool:
        """Whether a parent has not ended."""
        return any(not state(parent).ended for parent in self.of(task).parents)
