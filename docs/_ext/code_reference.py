"""The keys of the configuration and the options of a bag, read from the code, as Markdown."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeGuard

import msgspec
from msgspec import inspect as types

from adaptor.bag_spec import Option
from adaptor.bagfile.options import OPTIONS
from adaptor.config.ranges import MOST, KeyBounds, bounds_of, struct_of
from adaptor.config.schema import Config
from adaptor.units import Duration, HourlyRate, format_duration, format_hourly


class Key(NamedTuple):
    name: str
    values: str
    default: str
    meaning: str
    rare: bool = False
    """Whether few sites need it."""


class Group(NamedTuple):
    """The keys of one mapping of the YAML."""

    path: str
    """With a placeholder for names that users choose: `sites.NAME.limits`."""
    about: str
    keys: Sequence[Key]


def config_groups() -> list[Group]:
    """All mappings of the configuration, from the top of the file."""
    return list(_groups("", types.type_info(Config)))


def _groups(path: str, kind: types.Type) -> Iterator[Group]:
    inner = struct_of(kind)
    if isinstance(inner, types.DictType):
        yield from _groups(f"{path}.NAME", inner.value_type)
    elif isinstance(inner, types.StructType):
        sentences = _sentences(inner.cls)
        rare: frozenset[str] = getattr(inner.cls, "rare", frozenset())
        keys = [
            _key(path, field, sentences.get(field.name, ""))._replace(rare=field.name in rare)
            for field in inner.fields
        ]
        yield Group(path.lstrip("."), _about(inner.cls), keys)
        for field in inner.fields:
            yield from _groups(f"{path}.{field.encode_name}", field.type)


def _has_keys(kind: types.Type) -> bool:
    """Whether the value is a mapping with keys that this reference lists."""
    inner = struct_of(kind)
    return isinstance(inner, types.StructType) or (
        isinstance(inner, types.DictType) and isinstance(inner.value_type, types.StructType)
    )


@cache
def _sentences(struct: type) -> dict[str, str]:
    """The string below each field of a class: Python keeps none, so it is read from the source."""
    (body,) = [node.body for node in ast.walk(_tree(struct.__module__)) if _defines(node, struct)]
    return {
        field.target.id: _for_yaml(" ".join(inspect.cleandoc(str(text.value.value)).split()))
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def _defines(node: ast.AST, struct: type) -> TypeGuard[ast.ClassDef]:
    return isinstance(node, ast.ClassDef) and node.name == struct.__name__


def _for_yaml(text: str) -> str:
    """As one who writes YAML reads it: the None of Python is a key that is left out."""
    text = re.sub(r"(^|[.] )None: ", r"\1Left out: ", text)
    return re.sub(r"\bNone: ", "left out: ", text)


def _about(struct: type) -> str:
    return _for_yaml(" ".join((struct.__doc__ or "").split()))


def _key(path: str, field: types.Field, meaning: str) -> Key:
    values = _values(field.type)
    if _has_keys(field.type):
        named = ".NAME" if isinstance(struct_of(field.type), types.DictType) else ""
        values = f"[{values}](#{_anchor(f'{path}.{field.encode_name}{named}')})"
    return Key(field.encode_name, values, _default(field), meaning)


def _anchor(path: str) -> str:
    """Of a heading, as myst-parser and GitHub form it."""
    return path.replace(".", "").lower()


def _default(field: types.Field) -> str:
    if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
        return "required"
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    if value is None or value == "" or isinstance(value, msgspec.Struct):
        return ""
    return f"`{_in_yaml(value)}`"


def _in_yaml(value: Any) -> str:
    if isinstance(value, Duration):
        return format_duration(float(value))
    if isinstance(value, HourlyRate):
        return format_hourly(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_in_yaml, value)) + "]"
    return str(value)


def _values(kind: types.Type) -> str:
    """What may stand there, in words.

    Raises:
        TypeError: this function has no words for the type.
    """
    match kind:
        case types.UnionType():
            return " or ".join(_values(each) for each in kind.types if not isinstance(each, types.NoneType))
        case types.Metadata() if not _is_duration(kind):
            return _values(kind.type)
        case types.Metadata() | types.CustomType() | types.IntType() | types.FloatType():
            return _bounded(_noun(kind), bounds_of(kind))
        case types.LiteralType():
            return ", ".join(f"`{word}`" for word in kind.values)
        case types.VarTupleType() | types.ListType():
            return f"a list of {_values(kind.item_type)}"
        case types.DictType():
            return f"a mapping of names to {'keys' if _has_keys(kind) else _values(kind.value_type)}"
    return _noun(kind)


_NOUNS = {
    types.BoolType: "`true` or `false`",
    types.FloatType: "a number",
    types.IntType: "an integer",
    types.StrType: "text",
    types.StructType: "keys of its own",
}


def _noun(kind: types.Type) -> str:
    if _is_duration(kind):
        return "a duration"
    if isinstance(kind, types.CustomType) and kind.cls is HourlyRate:
        return "a rate per hour, such as `60/h`"
    if type(kind) not in _NOUNS:
        raise TypeError(f"no words for {kind}")
    return _NOUNS[type(kind)]


def _is_duration(kind: types.Type) -> bool:
    inner = kind.type if isinstance(kind, types.Metadata) else kind
    return isinstance(inner, types.CustomType) and inner.cls is Duration


def _bounded(noun: str, bounds: KeyBounds | None) -> str:
    if bounds is None:
        return noun
    if bounds.le is not None and bounds.le >= MOST:  # beyond it is a typing error, and no rule to know
        bounds = msgspec.structs.replace(bounds, le=None)
    words = bounds.words().removeprefix("must be").strip()
    return f"{noun}, {words}" if words else noun


def bag_rows() -> list[Key]:
    return [Key(option.key, _option_values(option), option.default, option.help) for option in OPTIONS]


def _option_values(option: Option) -> str:
    return ", ".join(f"`{word}`" for word in option.kind.words) or f"*{option.kind.metavar}*"


def _listing(rows: Sequence[Key]) -> Iterator[str]:
    """A list, which is read as it is, on a page and in the manual; a table would be too wide."""
    for row in rows:
        default = f"; default {row.default}" if row.default and row.default != "required" else ""
        required = "; required" if row.default == "required" else ""
        yield f"* `{row.name}` ({row.values}{default}{required}): {row.meaning}"


def keys_text() -> str:
    """All keys by mapping; those that few sites need come last."""
    groups = config_groups()
    lines: list[str] = []
    for group in groups:
        heading = f"`{group.path}`" if group.path else "The file"
        usual = [key for key in group.keys if not key.rare]
        about = [group.about, ""] if group.about else []
        lines += [f"## {heading}", "", *about, *_listing(usual), ""]
    lines += ["## Rarely needed keys", ""]
    for group in groups:
        if rare := [key for key in group.keys if key.rare]:
            lines += [f"### Rarely needed: `{group.path}`", "", *_listing(rare), ""]
    return "\n".join(lines)


def options_text() -> str:
    """All options of a bag."""
    return "\n".join(_listing(bag_rows())) + "\n"
