"""A call becomes a task, and the answer of a task becomes a value or an exception."""

from __future__ import annotations

import functools
import pickle
import secrets
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import msgspec

from adaptor.api import TaskEvent, TaskInput
from adaptor.endings import ending
from adaptor.errors import AdaptorError
from adaptor.executor import call_files
from adaptor.executor.resources import CallTerms
from adaptor.protocol.messages import ERROR, ERROR_OF_CHILDREN, INLINE, INPUT_FILE, TEXT, UNPREPARED, VALUE
from adaptor.resources import OwnNeeds


class CallError(AdaptorError):
    """A call ended without an answer, or with an exception that cannot be pickled."""


class RemoteTraceback(Exception):
    """The traceback of a call as text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


LARGE = 64 * 1024  # bytes of a pickled call from which on it goes by a file instead of over the link
_LONGEST_NAME = 200


class CallOutcome(msgspec.Struct, frozen=True):
    """The outcome of a call: its value or its error."""

    value: Any = None
    error: BaseException | None = None
    broken: bool = False  # whether no other call can do better: the initializer has failed


Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function, its arguments and its keyword arguments."""


def task_of(name: str, call: Call, folder: Path, terms: CallTerms) -> TaskInput:
    """The task that makes a call; functions and classes of `__main__` go by value.

    `name`: its name for people.

    Raises Exception: what pickling raised; OSError: the file of a large call cannot be written.
    """
    data, file = pickled(call), ""
    if len(data) >= LARGE:
        file = new_file()
        call_files.write(folder, file, data)
    payload = INPUT_FILE + file.encode() if file else INLINE + data
    needs = None if terms.needs == OwnNeeds() else terms.needs
    return TaskInput(name, call=payload, needs=needs, environment=terms.environment or None)


def pickled(call: Call) -> bytes:
    """Pickle a call. Raises Exception: what pickling raised."""
    import cloudpickle

    return bytes(cloudpickle.dumps(call, pickle.HIGHEST_PROTOCOL))


def new_file() -> str:
    """A name for the file of one more call."""
    return f"{secrets.token_hex(8)}.call"


def file_of(payload: bytes | None) -> str:
    """The file that a call is in; empty: it is in the payload itself."""
    return payload[1:].decode() if payload and payload[:1] == INPUT_FILE else ""


def name_of(function: Callable[..., Any]) -> str:
    """The name that people see in place of a command."""
    while isinstance(function, functools.partial):
        function = function.func
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{module}.{name}()"[:_LONGEST_NAME] if module else f"{name}()"[:_LONGEST_NAME]


def outcome_of(bag: int, event: TaskEvent, folder: Path) -> CallOutcome:
    """The outcome of a task that is done or has failed. Never raises."""
    where = f"bag {bag}, task {event.task}"
    if not event.answer:
        why = ending(event.exit_code, event.signal, event.error)
        return CallOutcome(error=CallError(f"{where}: the call has no result: {why}"))
    try:
        return _unpickled(event.answer, folder)
    except OSError as error:
        text = f"{where}: {error.filename or folder}: the result cannot be read: {error.strerror}"
        return CallOutcome(error=CallError(text))
    except BaseException as error:  # whatever its own code raises, other futures go on
        made = CallError(f"{where}: the result cannot be unpickled: {type(error).__name__}: {error}")
        made.__cause__ = error
        return CallOutcome(error=made)


def drop(answer: bytes | None, folder: Path) -> None:
    """Remove the file of an answer that is discarded."""
    if answer and answer[:1].isupper():
        call_files.remove(folder, answer[1:].decode())


def _unpickled(answer: bytes, folder: Path) -> CallOutcome:
    kind, rest = answer[:1], answer[1:]
    content = pickle.loads(call_files.take(folder, rest.decode()) if kind.isupper() else rest)  # noqa: S301
    match kind.lower():
        case kind if kind == VALUE:
            return CallOutcome(content)
        case kind if kind in (ERROR, ERROR_OF_CHILDREN):
            return CallOutcome(error=content)
        case kind if kind == TEXT:
            _, line, trace = content
            error = CallError(line)
            error.__cause__ = RemoteTraceback(trace)
            return CallOutcome(error=error)
        case kind if kind == UNPREPARED:
            _, line, trace = content
            broken = BrokenExecutor(f"the initializer failed: {line}")
            broken.__cause__ = RemoteTraceback(trace)
            return CallOutcome(error=broken, broken=True)
    raise ValueError(f"an answer of the kind {kind!r}: the daemon or the worker has another version")
