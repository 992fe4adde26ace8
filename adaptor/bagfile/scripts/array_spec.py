"""The indices of an array: `1-1000:2%50`, `0,3,7-9`, as sbatch, qsub and Torque's qsub take them."""

from __future__ import annotations

import re

import msgspec

MOST = 10_000_000
"""Elements of one array; more is taken for a typing error."""
_PART = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9})(?::(?P<step>\d{1,9}))?)?", re.ASCII)


class ArraySpec(msgspec.Struct, frozen=True):
    """The elements of an array."""

    indices: tuple[int, ...]
    """Rising, each once."""
    at_most: int | None
    """How many may run at the same time; None: any number."""
    step: int = 1
    """Of its last range, as Slurm tells it to the elements."""


def parse_array(text: str) -> ArraySpec:
    """Raises ValueError: it is no array."""
    parts, percent, at_most = text.partition("%")
    if percent and not (at_most.isascii() and at_most.isdigit() and int(at_most) > 0):
        raise ValueError(f"'{text}': behind % stands the number of elements that may run at the same time")
    indices: set[int] = set()
    step = 1
    for part in parts.strip().removeprefix("[").removesuffix("]").split(","):
        found, step = _range(part.strip(), text)
        if len(found) + len(indices) > MOST:
            raise ValueError(f"'{text}' has more than {MOST:,} elements")
        indices.update(found)
    return ArraySpec(tuple(sorted(indices)), int(at_most) if percent else None, step)


def _range(part: str, whole: str) -> tuple[range, int]:
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(f"'{whole}' is no array; write 1-100, 1-100:2, 0,3,7-9 or 1-100%50")
    first, last, step = int(match["first"]), int(match["last"] or match["first"]), int(match["step"] or 1)
    if last < first:
        raise ValueError(f"'{whole}': the range {part} is empty")
    if step < 1:
        raise ValueError(f"'{whole}': the step of {part} must be 1 or more")
    return range(first, last + 1, step), step
