"""The options of a bag as people write them, on `#ADAPTOR` lines and on the command line alike.

All of them are read from the declarations in `BagSpec` and `BagInput`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from adaptor.api import BagInput
from adaptor.bag_spec import BagSpec, Option
from adaptor.did_you_mean import did_you_mean
from adaptor.option_kinds import IMPLIED, Kind, choice, integer
from adaptor.units import shortened


def options_of(struct: type[msgspec.Struct]) -> Iterator[Option]:
    """The options among a struct's fields, in their order, with all that their declarations imply.

    Raises:
        TypeError: an option has no kind, and its type implies none.
    """
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        for option in getattr(hints[field.name], "__metadata__", ()):
            if isinstance(option, Option):
                yield msgspec.structs.replace(
                    option,
                    field=field.name,
                    key=option.key or field.name.replace("_", "-"),
                    kind=_implied_kind(hints[field.name]) if option.kind is IMPLIED else option.kind,
                    default=option.default or ("none" if field.default is None else str(field.default)),
                )


def _implied_kind(hint: Any) -> Kind:
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        for extra in extras:
            if isinstance(extra, msgspec.Meta) and inner is int:
                assert extra.ge is not None, "an integer option has bounds"
                assert extra.le is not None, "an integer option has bounds"
                return integer(int(extra.ge), int(extra.le))
        return _implied_kind(inner)
    if get_origin(hint) is Literal:
        return choice(get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (each for each in get_args(hint) if each is not type(None))
        return _implied_kind(inner)
    raise TypeError(f"an option of type {hint} needs a kind")


OPTIONS: tuple[Option, ...] = (*options_of(BagSpec), *options_of(BagInput))
_BY_KEY = {key: option for option in OPTIONS for key in (option.key, option.field)}
_BY_FIELD = {option.field: option for option in OPTIONS}
KEYS = frozenset(_BY_KEY)  # names that `parse_option` knows


def field_of(key: str) -> str:
    """The field that a known key means."""
    return _BY_KEY[key].field


def named_in(message: str, fields: Iterable[str]) -> list[str]:
    """The fields whose options a message names, as `--cpus` if it writes options so."""
    keys = {field: _BY_FIELD[field].key for field in fields}
    written = [field for field, key in keys.items() if _has(message, f"--{key}")]
    return written or [field for field, key in keys.items() if _has(message, key) or _has(message, field)]


def _has(message: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", message, re.IGNORECASE) is not None


def parse_option(key: str, text: str, now: float) -> tuple[str, Any]:
    """The field that `key` means, and its value.

    Args:
        now: epoch seconds, for options that take a time from now.

    Raises:
        ValueError: the key is unknown, or the text is not one of its values; the message says which.
    """
    if key not in _BY_KEY:
        hint = did_you_mean(key, _BY_KEY, f"known are {', '.join(_BY_KEY)}")
        raise ValueError(f"unknown option {shortened(key)} ({hint})")
    option = _BY_KEY[key]
    try:
        return option.field, option.kind.parse(text, now)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def add_options(options: dict[str, Any], text: str, now: float) -> None:
    """Add what stands behind `#ADAPTOR`, by field.

    Raises:
        ValueError: it is no option with its value, or one that was set before.
    """
    words = shlex.split(text)
    if not words:
        raise ValueError("#ADAPTOR needs an option; write #ADAPTOR key=value")
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"{shortened(word)} is not an option; write key=value")
        field, parsed = parse_option(key, value, now)
        if field in options:
            raise ValueError(f"duplicate option '{key}'")
        options[field] = parsed
