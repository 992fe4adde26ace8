"""`--json`: one value on stdout, durations in seconds as floats, times in ISO 8601 (UTC)."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import cache
from typing import Any, get_args, get_type_hints

import click
import msgspec

from adaptor.views import DURATION, INSTANT


def print_json(value: Any) -> None:
    """Print views, or lists and dictionaries of views, as one value."""
    print_figures(readable(value))


def print_figures(value: Any) -> None:
    """Print one value unchanged: the times of a trace are not times of the calendar."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def readable(value: Any) -> Any:
    """Views, or lists and dictionaries of views, as `--json` has them."""
    if isinstance(value, msgspec.Struct):
        meanings = _meanings(type(value))
        return {name: _field(getattr(value, name), meanings[name]) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: readable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [readable(item) for item in value]
    return msgspec.to_builtins(value)


def _field(value: Any, meaning: str) -> Any:
    if value is None or not meaning:
        return readable(value)
    return iso_time(value) if meaning == INSTANT else float(value)


@cache
def _meanings(view: type[msgspec.Struct]) -> dict[str, str]:
    """By field: what its number is, where its type says so (`views.Time`); else empty."""
    hints = get_type_hints(view, include_extras=True)
    return {name: _meaning(hints[name]) for name in view.__struct_fields__}


def _meaning(hint: Any) -> str:
    for part in (hint, *get_args(hint)):
        for said in getattr(part, "__metadata__", ()):
            if said in (INSTANT, DURATION):
                return str(said)
    return ""


def iso_time(seconds: float) -> str:
    """`2026-11-21T08:04:00.000Z`, from epoch seconds."""
    text = datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
