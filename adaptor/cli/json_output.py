"""`--json`: one value on stdout, durations in seconds as floats, times in ISO 8601 (UTC)."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import click
import msgspec

_TIMES = frozenset(
    {"deadline", "end_low", "end_high", "final_end", "made"}
    | {"time", "submitted", "predicted_start", "started", "ended", "observed", "since", "start", "end"}
)
_DURATIONS = frozenset({"tr", "max_tr"})
"""Durations that are integers in the views."""


def print_json(value: Any) -> None:
    """Print views, or lists and dictionaries of views, as one value."""
    print_figures(readable(msgspec.to_builtins(value)))


def print_figures(value: Any) -> None:
    """Print one value unchanged: the times of a trace are not times of the calendar."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def readable(value: Any) -> Any:
    """A view as `--json` has it, from `msgspec.to_builtins`."""
    if isinstance(value, dict):
        return {key: _field(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [readable(item) for item in value]
    return value


def _field(key: str, value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if key in _TIMES:
            return iso_time(value)
        if key in _DURATIONS:
            return float(value)
    return readable(value)


def iso_time(seconds: float) -> str:
    """`2026-11-21T08:04:00.000Z`, from epoch seconds."""
    text = datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
