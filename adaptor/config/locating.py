"""Messages of msgspec with the file, the line and the key, and the way out."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import inspect as types

from adaptor.config.ranges import KeyBounds, bounds_of, out_of_range, struct_of
from adaptor.config.schema import Config
from adaptor.config.yaml_lines import KeyLines
from adaptor.did_you_mean import did_you_mean, type_words
from adaptor.errors import ConfigError
from adaptor.units import Duration, HourlyRate, parse_duration, parse_hourly, shortened

T = TypeVar("T")
_NAMED = 10  # keys of a mapping that a message names; more would hide what is wrong

_AT = re.compile(r" - at (?P<key>`key` in )?`(?P<path>\$.*)`$")
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<field>.*)`")
_WANTS_KEYS = re.compile(r"Expected `object\b")
_OUT_OF_RANGE = re.compile(r"Expected `(int|float)( \| null)?` [<>]")


def converted(data: Any, lines: KeyLines, name: str, kind: type[T]) -> T:
    """Parsed YAML as a configuration or a policy; its fields and ranges are checked, alone.

    Args:
        name: of the file, in messages.

    Raises:
        ConfigError: a key is unknown or missing, or a value has a wrong type or is out of range.
    """
    try:
        config = msgspec.convert(data, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise _located(_with_key(str(error), data), data, lines, name, kind) from error
    for path, bounds in out_of_range(types.type_info(kind), config, "$"):
        raise _error(path, _outside(bounds, path, data), lines, name)
    return config


def _decode(kind: type, value: Any) -> Any:
    if kind is Duration:
        return Duration(parse_duration(value))
    if kind is HourlyRate:
        return HourlyRate(parse_hourly(value))
    raise NotImplementedError(kind)


def _with_key(message: str, data: Any) -> str:
    """The message with the names of site and partition: msgspec writes `[...]` for a key of a mapping."""
    if "`$.sites[...]" not in message:
        return message
    for site, raw in data["sites"].items():
        if found := _problem({"sites": {site: raw}}):
            found = found.replace("$.sites[...]", f"$.sites.{site}", 1)
            for name, own in raw["partitions"].items() if ".partitions[...]" in found else ():
                if _problem({"sites": {site: {"backend": "", "partitions": {name: own}}}}):
                    return found.replace(".partitions[...]", f".partitions.{name}", 1)
            return found
    return message


def _problem(data: Any) -> str:
    """The problem that msgspec finds; empty: none."""
    try:
        msgspec.convert(data, Config, dec_hook=_decode)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def _located(message: str, data: Any, lines: KeyLines, name: str, kind: type) -> ConfigError:
    """The error for a message of msgspec, whose path is at its end."""
    at = _AT.search(message)
    problem, path = (message[: at.start()], at["path"]) if at else (message, "$")
    if at and at["key"]:
        problem = "a key that is not text; put it in quotes"
    unknown = _UNKNOWN_FIELD.fullmatch(problem)
    if unknown:
        hint = did_you_mean(unknown["field"], _keys_at(kind, path), shown="`{}`")
        path = f"{path}.{unknown['field']}"
        problem = f"unknown key ({hint})" if hint else "unknown key"
    elif _OUT_OF_RANGE.match(problem):
        found = _type_at(kind, path)
        bounds = bounds_of(found) if found is not None else None
        problem = _outside(bounds, path, data) if bounds is not None else problem
    elif _WANTS_KEYS.match(problem) and 0 < len(known := _keys_at(kind, path)) <= _NAMED:
        problem = f"{type_words(problem)}; its keys are {', '.join(known)}"
    return _error(path, type_words(problem), lines, name)


def _outside(bounds: KeyBounds, path: str, data: Any) -> str:
    value = data
    for part in path.split(".")[1:]:
        value = value[part]
    shown = value if isinstance(value, str) else shortened(value)
    return f"{bounds.words()}, not {shown[:40]}"


def _error(path: str, problem: str, lines: KeyLines, name: str) -> ConfigError:
    known = path.partition("[...]")[0]  # msgspec does not say which key of a mapping it means.
    return ConfigError(f"{name}:{lines.get(path, lines.get(known, 1))}: {path[2:] or 'the file'}: {problem}")


def _type_at(whole: type, path: str) -> types.Type | None:
    """The type of the field at a path; None: there is no such field."""
    kind: types.Type | None = types.type_info(whole)
    for part in path.split(".")[1:]:
        kind = struct_of(kind) if kind is not None else None
        if isinstance(kind, types.DictType):
            kind = kind.value_type
        elif isinstance(kind, types.StructType):
            kind = next((field.type for field in kind.fields if field.encode_name == part), None)
    return kind


def _keys_at(whole: type, path: str) -> list[str]:
    kind = _type_at(whole, path)
    inner = struct_of(kind) if kind is not None else None
    return [field.encode_name for field in inner.fields] if isinstance(inner, types.StructType) else []
