"""What jobs of OpenPBS ask for: their `select` and `place` (pbs_resources(7B)). Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from backends.numbers import whole
from backends.pbs.fields import parse_amounts
from backends.pbs.rows import PbsChunk

AMOUNT = re.compile(r"\d+(\.\d+)?([kmgtp]?[bw])?", re.IGNORECASE)
"""The value of a resource that is used up; any other names what a node is."""
GPU_TYPES = ("gpu_type", "gpu_model", "gputype")
"""Resources by which sites name the type of a node's GPUs, for PBS has none of its own; the first counts."""
_CHUNK = re.compile(r"""(?:[^+"']|"[^"]*"|'[^']*')+""")
_WORD = re.compile(r"""(?:[^:"']|"[^"]*"|'[^']*')+""")


@functools.lru_cache(maxsize=512)
def parse_select(text: str) -> tuple[PbsChunk, ...]:
    """The chunks of `2:ncpus=3:mem=1gb:host=n1+ncpus=4`; without processors a chunk has one, as PBS sets it.

    Raises:
        ValueError: a number is no number.
    """
    return tuple(_chunk(_WORD.findall(part)) for part in _CHUNK.findall(text))


def _chunk(words: list[str]) -> PbsChunk:
    first, *rest = words or [""]
    count = whole(first) if first.isdecimal() else 1
    resources = rest if first.isdecimal() else [first, *rest]
    each = parse_amounts(resources)
    if not any(word.startswith("ncpus=") for word in resources):
        each = msgspec.structs.replace(each, processors=1)
    return PbsChunk(count=count, each=each, traits=_traits(resources))


def _traits(resources: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = (word.partition("=")[::2] for word in resources if "=" in word)
    plain = ((name, value.strip("\"'")) for name, value in pairs)
    return tuple(
        sorted((name, value) for name, value in plain if name in GPU_TYPES or not AMOUNT.fullmatch(value))
    )


def placing(place: str) -> Literal["free", "pack", "scatter"]:
    """Of `free`, `pack:excl`, `scatter`, `vscatter:shared`, …; vnodes of one machine are no machines."""
    words = place.split(":")
    if "pack" in words:
        return "pack"
    return "scatter" if "scatter" in words else "free"


def gpu_type(resources: Mapping[str, str]) -> str:
    """Of a node's GPUs; of several that it names, the first."""
    named = next((resources[name] for name in GPU_TYPES if name in resources), "")
    return named.split(",")[0].strip("\"' ")
