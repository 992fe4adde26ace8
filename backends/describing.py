"""What the site configurations that `adaptor site init` writes have in common. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import yaml

from adaptor.units import clock_duration, format_duration, parse_duration
from backends.ceilings import Bound


def source(bound: Bound, ours: int, scheduler: str, why: str = "") -> str:
    """Where a limit comes from: the scheduler, or where that allows more than is neighbourly, ourselves."""
    if bound.value <= ours:
        return bound.source
    allows = "" if math.isinf(bound.value) else f" ({bound.value:g})"
    chosen = f"our own choice, {why}" if why else "our own choice"
    return f"{chosen}; {scheduler}: {bound.source}{allows}"


def duration(seconds: int) -> str:
    """As short as can be read back exactly."""
    text = format_duration(seconds)
    return text if parse_duration(text) == seconds else f"'{clock_duration(seconds)}'"


def partition_lines(names: Sequence[str], word: str) -> list[str]:
    """How several partitions would be one site, as a comment below its first key; nothing of one.

    Args:
        word: what the scheduler calls them, for instance `partitions`.
    """
    if len(names) < 2:
        return []
    listed = ", ".join(map(_entry, names))
    return [
        f"    # To have each request choose among several {word}, write instead of `partition` and `limits`:",
        f"    # partitions: {{{listed}}}",
    ]


def _entry(partition: str) -> str:
    name = site_name(partition, "other")
    return f"{scalar(name)}: {{{'' if name == partition else f'partition: {scalar(partition)}'}}}"


def site_name(queue: str, otherwise: str) -> str:
    """A site's name from that of a partition or queue."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", queue).lstrip("-_") or otherwise


def scalar(text: str) -> str:
    """As YAML writes it: a partition may be called `null` or `1e3`."""
    return str(yaml.safe_dump(text, default_flow_style=True)).split("\n")[0]
