"""`--json`: one value on stdout, durations in seconds as floats, times in ISO 8601 (UTC)."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from typing import Any

import click
import msgspec

from adaptor.api.fields import Meaning, meanings


def print_json(value: Any) -> None:
    """Print views, or lists and dictionaries of views, as one value."""
    print_figures(readable(value))


def print_figures(value: Any) -> None:
    """Print one value unchanged: the times of a trace are not times of the calendar."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def readable(value: Any, meaning: Meaning = Meaning.PLAIN) -> Any:
    """Views, or lists and dictionaries of views, as `--json` has them; a meaning is that of all numbers."""
    if isinstance(value, msgspec.Struct):
        said = meanings(type(value))
        return {
            name: readable(getattr(value, name), meaning if said[name] is Meaning.PLAIN else said[name])
            for name in value.__struct_fields__
        }
    if isinstance(value, dict):
        return {key: readable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [readable(item) for item in value]
    if value is None or meaning not in (Meaning.TIME, Meaning.DURATION):
        return msgspec.to_builtins(value)
    if not math.isfinite(value):  # the end of an interval without one
        return None
    return iso_time(value) if meaning is Meaning.TIME else float(value)


def iso_time(seconds: float) -> str:
    """`2026-11-21T08:04:00.000Z`, from epoch seconds."""
    text = datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
