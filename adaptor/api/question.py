"""A question is a type that names its answer: `class GetBags(Question[Bags], frozen=True)`.

To declare it is to register it. A function answers it that `Handlers` has for it: of the daemon, and of the
journal where the question says `kept`. Messages are msgpack; one question, one answer or failure.

What a field means is its type, from which `--json`, tables and words for people follow. A plain number has no
further meaning; a plain float of a view is seconds, or as its name says.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from adaptor.errors import AdaptorError, UsageError
from adaptor.model import Estimate
from adaptor.protocol.decoding import decoded


class Meaning(Enum):
    """Meaning of a field, by which it is printed."""

    TIME = "time"
    DURATION = "duration"
    BYTES = "bytes"
    COUNT = "count"  # of things, or a number of one
    STATE = "state"  # no number: a word that has a colour
    PLAIN = "plain"


Time = Annotated[float, Meaning.TIME]  # epoch seconds; people see local time, `--json` ISO 8601 in UTC
WholeSeconds = Annotated[int, Meaning.DURATION]  # whole seconds; `--json` has a float, as of all durations
Seconds = Annotated[float, Meaning.DURATION]  # seconds that pass
Bytes = Annotated[int, Meaning.BYTES]
StateName = Annotated[str, Meaning.STATE]
TimeInterval = Annotated[Estimate, Meaning.TIME]
"""A time, and the interval in which it lies with probability 0.9; `high` is infinite if no end is known."""


@cache
def meanings(view: type[msgspec.Struct]) -> dict[str, Meaning]:
    """The meaning of each field of a view, by name."""
    hints = get_type_hints(view, include_extras=True)
    return {name: _meaning(hints[name]) for name in view.__struct_fields__}


def _meaning(hint: Any) -> Meaning:
    """The meaning of a field, which may have None besides its number; for a list, that of its entries."""
    if get_origin(hint) is list:
        return _meaning(get_args(hint)[0])
    parts = (hint, *get_args(hint))
    for part in parts:
        for said in getattr(part, "__metadata__", ()):
            if isinstance(said, Meaning):
                return said
    return Meaning.COUNT if int in parts else Meaning.PLAIN


PROTOCOL = "1-96a2a717"
"""A digest of the shapes of all questions and answers, written by `python -m tests.api.golden`.

The number before it is raised by hand if a message of the same shape gets another meaning."""

A = TypeVar("A")
_Context = TypeVar("_Context")
_Handler = TypeVar("_Handler", bound=Callable[..., Any])


class KeyAccess(Enum):
    """Questions that a key with a grant (`api/grants.py`) may ask."""

    CLOSED = "closed"
    PUBLIC = "public"  # questions whose answers say nothing of bags
    READ = "read"  # questions that show bags: its own, which the question names
    CHANGE = "change"  # the same, and the journal keeps a line of it; not with a grant that is read-only


class Question(msgspec.Struct, Generic[A], frozen=True, tag=True):
    """A question of a client; `A` is the answer."""

    for_keys: ClassVar[KeyAccess] = KeyAccess.CLOSED  # whether a key with a grant may ask it
    kept: ClassVar[bool] = False  # whether the journal answers it where no daemon runs
    nothing: ClassVar[Any] = None  # the answer where nothing was ever submitted; None: that is a failure
    takes_time: ClassVar[bool] = False
    """Whether schedulers are asked, queues are planned, events are awaited or many tasks changed for it."""
    writes: ClassVar[bool] = False  # whether the journal has to be written for it
    any_version: ClassVar[bool] = False
    """Whether a daemon of any version answers it, as `adaptor/api/frozen.py` says."""

    @classmethod
    def answer_type(cls) -> Any:
        (base,) = cls.__orig_bases__  # type: ignore[attr-defined]
        return base.__args__[0]


class Failure(msgspec.Struct, frozen=True):
    """Why a question was not served."""

    message: str
    usage: bool = False  # whether the question itself was at fault (exit code 2)


class Handlers(Generic[_Context]):
    """Functions of a context and a question, each registered for its question by decorating it."""

    def __init__(self) -> None:
        self._handlers: dict[type[Question[Any]], Callable[[_Context, Any], Any]] = {}

    def __call__(self, kind: type[Question[Any]]) -> Callable[[_Handler], _Handler]:
        def registered(handler: _Handler) -> _Handler:
            assert kind not in self._handlers, f"{kind.__name__} has two handlers"
            self._handlers[kind] = handler
            return handler

        return registered

    def of(self, kind: type[Question[Any]]) -> Callable[[_Context, Any], Any] | None:
        return self._handlers.get(kind)


# --- messages ------------------------------------------------------------------------------------


class _Reply(msgspec.Struct, frozen=True, array_like=True):
    failure: Failure | None
    answer: msgspec.Raw = msgspec.Raw(b"\xc0")


_encoder = msgspec.msgpack.Encoder()
_reply = msgspec.msgpack.Decoder(_Reply)


@cache
def _questions() -> msgspec.msgpack.Decoder[Question[Any]]:
    return msgspec.msgpack.Decoder(Union[tuple(Question.__subclasses__())])  # noqa: UP007


@cache
def _answers(kind: type[Question[Any]]) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind.answer_type())


@cache
def _of_any_version() -> msgspec.msgpack.Decoder[Question[Any]]:
    kinds = tuple(kind for kind in Question.__subclasses__() if kind.any_version)
    return msgspec.msgpack.Decoder(Union[kinds])  # noqa: UP007


def encode_question(question: Question[Any]) -> bytes:
    return _encoder.encode(question)


def encode_answer(answer: object) -> bytes:
    """An answer, or a Failure, as it travels."""
    if isinstance(answer, Failure):
        return _encoder.encode(_Reply(answer))
    return _encoder.encode(_Reply(None, msgspec.Raw(_encoder.encode(answer))))


def decode_question(data: bytes, *, same: bool = True) -> Question[Any]:
    """The question; `same`: whether the client speaks the same `PROTOCOL`, so that it may ask anything.

    Raises msgspec.DecodeError: it is anything else.
    """
    return decoded((_questions() if same else _of_any_version()).decode, data)


def decode_answer(question: Question[A], data: bytes) -> A:
    """The answer to a question.

    Raises:
        UsageError, AdaptorError: it is a failure.
        msgspec.DecodeError: it is anything else.
    """
    reply = decoded(_reply.decode, data)
    if reply.failure is not None:
        raise (UsageError if reply.failure.usage else AdaptorError)(reply.failure.message)
    answer: A = decoded(_answers(type(question)).decode, bytes(reply.answer))
    return answer
