"""Shapes of messages on their way, from their types: two versions must have them in common."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from msgspec import inspect

from adaptor import api
from adaptor.protocol.messages import FromWorker, ToWorker

Shapes = dict[str, dict[str, Any]]
"""By the name of a struct: `tag` (empty: none), `list` (whether it travels as one), and `fields`: lists of a
name, a type as text, and whether it must be there."""


def shapes(types: Iterable[Any]) -> Shapes:
    """Shapes of these types, and of all that are in them."""
    found: Shapes = {}
    for info in inspect.multi_type_info(types):
        _text(info, found)
    return dict(sorted(found.items()))


def digest(types: Iterable[Any]) -> str:
    """Eight letters that change with any of the shapes, and not with docstrings or the order of the types."""
    told = json.dumps(shapes(types), sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def _text(info: inspect.Type, found: Shapes) -> str:
    """A type as text; its structs and tuples with names go into `found`."""
    match info:
        case inspect.Metadata(type=inner):
            return _text(inner, found)
        case inspect.StructType() | inspect.NamedTupleType():
            return _struct(info, found)
        case inspect.UnionType(types=types):
            return f"({' | '.join(sorted(_text(each, found) for each in types))})"
        case inspect.EnumType(cls=cls):
            return f"one of {', '.join(sorted(str(each.value) for each in cls))}"
        case inspect.LiteralType(values=values):
            return f"one of {', '.join(sorted(map(str, values)))}"
        case inspect.DictType(key_type=key, value_type=value):
            return f"map[{_text(key, found)}, {_text(value, found)}]"
        case inspect.TupleType(item_types=types):
            return f"tuple[{', '.join(_text(each, found) for each in types)}]"
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return f"list[{_text(item, found)}]"
    return type(info).__name__.removesuffix("Type").lower()


def _struct(info: inspect.StructType | inspect.NamedTupleType, found: Shapes) -> str:
    name, travels = info.cls.__name__, isinstance(info, inspect.NamedTupleType) or info.array_like
    if name not in found:
        found[name] = {"tag": getattr(info, "tag", None) or "", "list": travels, "fields": []}
        found[name]["fields"] = [
            [field.encode_name, _text(field.type, found), field.required] for field in info.fields
        ]
    return name


def misfits(before: Shapes, now: Shapes) -> list[str]:
    """Why sides with the shapes before and with those of now do not understand each other; none: they do.

    Fields may have been added, behind the others and with a default.
    """
    told = []
    for name, old in before.items():
        new = now.get(name)
        if new is None or (new["tag"], new["list"]) != (old["tag"], old["list"]):
            told.append(f"{name} is gone, or travels in another form")
            continue
        fields = new["fields"]
        kept = (
            fields[: len(old["fields"])]
            if old["list"]
            else [each for each in fields if each in old["fields"]]
        )
        if sorted(kept) != sorted(old["fields"]) or (old["list"] and kept != old["fields"]):
            told.append(f"{name} has lost or changed a field: {old['fields']} -> {fields}")
        told += [
            f"{name}.{field} is new and has no default"
            for field, _, required in fields
            if required and [field, _, required] not in old["fields"]
        ]
    return told


def api_types() -> list[Any]:
    """Types of all questions and answers."""
    kinds = [kind for kind in api.Question.__subclasses__() if kind.__module__.startswith("adaptor.")]
    return [*kinds, *(kind.answer_type() for kind in kinds), api.Failure]


def worker_types() -> list[Any]:
    """Types of the messages between workers and the daemon."""
    return [*FromWorker.__args__, *ToWorker.__args__]  # type: ignore[attr-defined]
