"""Sizes, times and GPUs as sbatch and qsub take them."""

from __future__ import annotations

import re

import msgspec

from adaptor.resources import TaskGpus

_SLURM_SIZE = re.compile(r"(?P<number>\d{1,15})(?P<unit>[KMGT]?)B?", re.ASCII | re.IGNORECASE)
_PBS_SIZE = re.compile(r"(?P<number>\d{1,15})(?P<unit>[kmgtp]?)(?P<what>[bw]?)", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_CLOCK = re.compile(r"(?:(?P<days>\d{1,5})-)?(?P<parts>(?(days)|\d)\d{0,8}(?::\d{1,2}){0,2})", re.ASCII)
_PBS_TIME = re.compile(r"\d{1,9}(?::\d{1,2}){0,2}(?:\.\d{1,3})?", re.ASCII)
_UNLIMITED = ("0", "infinite", "unlimited")


def slurm_size(text: str) -> int:
    """Bytes; a number alone is megabytes. Raises ValueError."""
    match = _SLURM_SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is no size; write 4000, 4000M or 4G")
    size: int = int(match["number"]) * 1024 ** _POWERS[match["unit"].upper() or "M"]
    return size


def pbs_size(text: str) -> int:
    """Bytes; a number alone is bytes, `w` are words of 8 bytes. Raises ValueError."""
    match = _PBS_SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is no size; write 4gb or 4000mb")
    size: int = int(match["number"]) * 1024 ** _POWERS[match["unit"].upper()]
    return size * 8 if match["what"].lower() == "w" else size


def slurm_time(text: str) -> float | None:
    """Seconds from `minutes`, `minutes:seconds`, `h:m:s`, `days-`, `days-h`, `days-h:m` or `days-h:m:s`.

    None: no limit. Raises ValueError.
    """
    if text.lower() in _UNLIMITED:
        return None
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is no time; write minutes, HH:MM:SS or D-HH:MM:SS")
    parts = [int(part or 0) for part in match["parts"].split(":")]
    if match["days"] is not None:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        return float(((int(match["days"]) * 24 + hours) * 60 + minutes) * 60 + seconds)
    if len(parts) == 3:
        return float((parts[0] * 60 + parts[1]) * 60 + parts[2])
    return float(parts[0] * 60 + (parts[1] if len(parts) > 1 else 0))


def pbs_time(text: str) -> float:
    """Seconds from plain seconds, `MM:SS` or `HH:MM:SS`. Raises ValueError."""
    if not _PBS_TIME.fullmatch(text):
        raise ValueError(f"'{text}' is no time; write seconds or HH:MM:SS")
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


def gpus(text: str) -> TaskGpus | None:
    """`2` or `a100:2`; None for `0`. Raises ValueError."""
    kind, _, count = text.rpartition(":")
    if not (count.isascii() and count.isdigit()) or int(count) > 4096:
        if kind or not re.fullmatch(r"[A-Za-z]\w*", count):
            raise ValueError(f"'{text}' is no number of GPUs; write 2 or a100:2")
        kind, count = count, "1"
    return TaskGpus(float(count), kind) if int(count) else None


def gres(text: str) -> TaskGpus | None:
    """`gpu`, `gpu:2` or `gpu:a100:2`. Raises ValueError: it is another resource."""
    name, colon, rest = text.partition(":")
    if name != "gpu" or "," in text:
        raise ValueError(f"'{text}': of generic resources only gpu is divided among tasks")
    return gpus(rest) if colon else TaskGpus(1.0, "")


def whole(text: str) -> int:
    """A number of 1 or more. Raises ValueError."""
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 1_000_000:
        raise ValueError(f"'{text}' is no number of 1 or more")
    return int(text)


MOST = 10_000_000  # elements of one array; more is taken for a typing error
_PART = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9})(?::(?P<step>\d{1,9}))?)?", re.ASCII)


class ArraySpec(msgspec.Struct, frozen=True):
    """The elements of an array."""

    indices: tuple[int, ...]
    """Indexes in rising order, each once."""
    at_most: int | None
    """The elements that may run at the same time; None: any number, which `%0` says too."""
    step: int = 1
    """Step of its last range, as Slurm tells it to the elements."""


def parse_array(text: str) -> ArraySpec:
    """Read the indexes of an array. Raises ValueError: the text is no array."""
    bare = text.strip()
    bare = bare[1:-1] if bare.startswith("[") and bare.endswith("]") else bare
    parts, percent, at_most = bare.partition("%")
    if percent and not (at_most.isascii() and at_most.isdigit()):
        raise ValueError(f"'{text}': behind % stands the number of elements that may run at the same time")
    indices: set[int] = set()
    step = 1
    for part in parts.strip().removeprefix("[").removesuffix("]").removesuffix(",").split(","):
        found, step = _range(part.strip(), text)
        if len(found) + len(indices) > MOST:
            raise ValueError(f"'{text}' has more than {MOST:,} elements")
        indices.update(found)
    return ArraySpec(tuple(sorted(indices)), int(at_most or 0) or None, step)


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
