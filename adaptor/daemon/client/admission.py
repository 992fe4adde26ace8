"""Checks of the questions of keys with a grant: each question passes here before it is served.

Questions say whether keys may ask them at all (`Question.for_keys`, closed unless they do). This module holds
new bags to the grant, and all others to the bags of the key. The credits and processors of its bags are held
by the ledger, whenever something is submitted for them.
"""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from adaptor import api
from adaptor.api.question import KeyAccess
from adaptor.bag_spec import DEFAULT_OUTPUT, BagSpec
from adaptor.budget.accounting.credits import format_credits, in_credits
from adaptor.daemon.core import Core
from adaptor.errors import UsageError
from adaptor.journal.adding import OpenedBag
from adaptor.journal.grant_rows import GrantedKey, kept_of, note_key, pilots_of, unfinished_of
from adaptor.journal.selectors import RECENT, ids_of
from adaptor.protocol.access import KEY_VARIABLE
from adaptor.units import counted, format_instant, shortened

MOST_TASKS = 100_000  # of one bag
MOST_BAGS = 100  # of a key that have not ended
_MOST_LINES = 200
_REFUSALS, _PER = 20, 3600.0
"""Refusals of a key that the journal keeps, and in how many seconds: a flood must not fill the disk."""
_LETTERS = 200  # of a command in a line of the journal
_SETTABLE = frozenset(
    {
        *("name", "cpus", "memory", "gpus", "nodes", "bind", "time", "timeout", "retries", "on_oom"),
        *("max_fails", "canary", "max_running", "requeue_on", "signal", "max_lost", "replicas", "deadline"),
        *("prefer", "allocation", "order", "sites", "after", "after_any", "cwd", "output", "output_files"),
        *("environment", "umask", "begin"),
    }
)
"""Options that a bag of a key may have. The others reach beyond it: `notify` sends messages, `priority` and
`kind` concern other bags, scripts, calls and a shell hide what runs from the line in the journal."""
_DEFAULT = BagSpec(name="", cwd="", output=DEFAULT_OUTPUT, environment={})


class Admission:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._refused: dict[str, deque[float]] = {}

    def admit(self, identity: str, question: api.Question[Any]) -> tuple[GrantedKey, api.Question[Any]]:
        """The key and the question as it may be served. Raises UsageError: it may not."""
        key, now = self._core.grants.named_by(identity), self._core.now()
        if key is None:
            raise UsageError("this key is revoked")
        try:
            return key, self._admitted(key, question, now)
        except UsageError as error:
            if question.for_keys in (KeyAccess.CLOSED, KeyAccess.CHANGE):
                self._note_refusal(key, error, now)
            raise

    def _admitted(self, key: GrantedKey, question: api.Question[Any], now: float) -> api.Question[Any]:
        grant, who, what = key.grant, f"key {key.name}", type(question).__name__
        if question.for_keys is KeyAccess.CLOSED:
            raise UsageError(f"{who} may not ask {what}")
        if grant.until is not None and now >= grant.until:
            raise UsageError(f"the grant of {who} ended at {format_instant(grant.until)}")
        if question.for_keys is KeyAccess.CHANGE and grant.read_only:
            raise UsageError(f"{who} is read-only: it may not ask {what}")
        if isinstance(question, api.GetPlan):
            _check_tasks(key, question.tasks)
        if question.for_keys is KeyAccess.PUBLIC:
            return question
        if isinstance(question, api.Open | api.Add | api.Publish):
            return self._new_bag(key, question)
        if question.for_keys is KeyAccess.READ and grant.all_bags:
            return question
        if isinstance(question, api.GetBags):
            own = self._core.journal.read(kept_of, key.name)
            chosen = list(own)[-RECENT:] if question.selector == "recent" else ids_of(question.selector, own)
            # A range without a bag selects none.
            return api.GetBags(",".join(map(str, chosen[-_MOST_LINES:])) or "0-0")
        self._check_own(key, _bags_of(question))
        if isinstance(question, api.GetWhy):
            return msgspec.structs.replace(question, limit=min(max(1, question.limit), _MOST_LINES))
        return question

    def _check_own(self, key: GrantedKey, bags: Collection[int]) -> None:
        for bag in bags:
            if self._core.grants.key_of.get(bag) != key.name:
                raise UsageError(f"key {key.name} has no bag {bag}")

    def _new_bag(
        self, key: GrantedKey, question: api.Open | api.Add | api.Publish
    ) -> api.Open | api.Add | api.Publish:
        """A question of a new bag, under a key of the client's that no other client has.

        Raises UsageError: the bag goes beyond the grant.
        """
        who, own = f"key {key.name}", f"{key.name}:{question.key}"
        if isinstance(question, api.Open):
            question = self._opened(key, question)
        elif isinstance(question, api.Publish):
            if question.open or question.resume:
                raise UsageError(f"a bag of {who} is submitted with all its tasks, and continues no other")
        else:
            if question.bag:
                self._check_own(key, [question.bag])
            if any(task.call is not None for task in question.tasks):
                raise UsageError(f"tasks of {who} are commands")
            _check_tasks(key, question.first + len(question.tasks))
        return msgspec.structs.replace(question, key=own)

    def _opened(self, key: GrantedKey, question: api.Open) -> api.Open:
        """A new bag within the grant of the key. Raises UsageError: the bag goes beyond it."""
        who, grant, spec = f"key {key.name}", key.grant, question.spec
        for field in BagSpec.__struct_fields__:
            if field not in _SETTABLE and getattr(spec, field) != getattr(_DEFAULT, field):
                raise UsageError(f"a bag of {who} may not set {field}")
        canary = grant.canary if spec.canary == "yes" else spec.canary
        if not isinstance(canary, int) or canary < grant.canary:
            raise UsageError(f"a bag of {who} has canary={grant.canary} or more, not {spec.canary}")
        self._check_own(key, {*spec.after, *spec.after_any})
        if self._core.journal.read(unfinished_of, key.name) >= MOST_BAGS:
            raise UsageError(f"{who} has {MOST_BAGS} bags that have not ended: wait for one, or cancel one")
        left = self._core.ledger.joint(key.name).left
        budget = in_credits(max(0, left)) if question.budget is None else question.budget
        if not 0 < budget <= in_credits(left):  # false for NaN too
            raise UsageError(
                f"a budget of {budget:g}: {format_credits(max(0, left))} of the {grant.budget:g} credits of"
                f" {who} are neither used nor reserved"
            )
        # So that the commands of the adaptor in a task use the key too.
        environment = {**spec.environment, KEY_VARIABLE: key.name}
        spec = msgspec.structs.replace(spec, canary=canary, environment=environment)
        return msgspec.structs.replace(question, spec=spec, budget=budget, owner=key.name)

    def _note_refusal(self, key: GrantedKey, error: UsageError, now: float) -> None:
        kept = self._refused.setdefault(key.name, deque(maxlen=_REFUSALS))
        if len(kept) == _REFUSALS and 0 <= now - kept[0] < _PER:
            return
        kept.append(now)
        with self._core.journal.transaction() as db:
            note_key(db, key.name, now, f"refused: {str(error)[:300]}")

    def shown(self, key: GrantedKey, question: api.Question[Any], answer: Any) -> Any:
        """The answer without what concerns the bags of others; a line of what was done."""
        if isinstance(question, api.Cancel):
            bags = ", ".join(map(str, question.bags))
            with self._core.journal.transaction() as db:
                told = f"cancelled {counted(answer, 'task')} of bag {bags}"
                note_key(db, key.name, self._core.now(), told, question.bags)
        if isinstance(answer, api.Failure):
            return answer
        if isinstance(question, api.GetKeys):
            return [view for view in answer if view.name == key.name]
        if key.grant.all_bags or question.for_keys is not KeyAccess.READ:
            return answer
        filtered = _FILTERS.get(type(question))
        return answer if filtered is None else filtered(self._core, key, answer)


def _check_tasks(key: GrantedKey, tasks: int) -> None:
    if tasks > MOST_TASKS:
        raise UsageError(f"a bag of key {key.name} has at most {MOST_TASKS:,} tasks, not {tasks:,}")


def told_of(there: OpenedBag, first: api.TaskInput) -> str:
    """The line of a new bag, of which `first` is the first task."""
    given = there.question
    command = first.command if isinstance(first.command, str) else shlex.join(first.command)
    # Quoted as by repr, so that no line break forges another line.
    return (
        f"submitted bag {there.bag} ({shortened(given.spec.name)}): {counted(there.total, 'task')}, budget"
        f" {given.budget:g}, the first: {command[:_LETTERS]!r}{'…' if len(command) > _LETTERS else ''}"
    )


def _bags_of(question: Any) -> Collection[int]:
    """The bags that a question names. Raises UsageError: it names none."""
    if isinstance(question, api.GetEvents):
        return question.since
    if isinstance(question, api.Cancel):
        return question.bags
    if getattr(question, "pilot", None) is not None or question.bag is None:
        raise UsageError("name a bag")
    return (question.bag,)


_BAG = re.compile(r"\bbags? (\d+)")


def _own_lines(core: Core, key: GrantedKey, answer: api.Why) -> api.Why:
    pilots = {f"pilot {id}" for id in core.journal.read(pilots_of, key.name)}

    def own(line: api.Explanation) -> bool:
        named = {*line.bags, *map(int, _BAG.findall(line.text))}
        if line.subject.startswith("pilot ") and line.subject not in pilots:
            return False
        if line.kind == "key" and not line.text.startswith(f"key {key.name}: "):
            return False
        return all(core.grants.key_of.get(bag) == key.name for bag in named)

    return msgspec.structs.replace(answer, lines=[line for line in answer.lines if own(line)])


def _own_requests(core: Core, key: GrantedKey, answer: api.BagReport) -> api.BagReport:
    pilots = core.journal.read(pilots_of, key.name)
    requests = [request for request in answer.requests if request.id in pilots]
    return msgspec.structs.replace(answer, requests=requests, forecast_record=None)


_FILTERS: dict[type[Any], Callable[[Core, GrantedKey, Any], Any]] = {
    api.GetBags: lambda _core, _key, answer: api.Bags(answer.bags),
    api.GetWhy: _own_lines,
    api.GetReport: _own_requests,
}
