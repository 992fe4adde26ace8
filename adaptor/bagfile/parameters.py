"""Parameters of a template as people write them: `frame=1:100`, `scene=a,b,c`, `seed=@seeds.txt`."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

from adaptor.errors import UsageError
from adaptor.option_kinds import plain_text
from adaptor.units import shortened

MAX_VALUES = 10_000_000
"""Values of one range; more is taken for a typing error."""

_NUMBER = r"-?\d{1,15}(?:\.\d{1,9})?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::({_NUMBER}))?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def parse_parameter(text: str) -> tuple[str, list[str]]:
    """`NAME=VALUES` of one `-P`: items by comma, ranges `a:b[:step]` (both ends count), or `@file`.

    Raises:
        UsageError: no name, no value, an empty range, or an unreadable file.
    """
    name, equals, values = text.partition("=")
    if not equals or not _NAME.fullmatch(name):
        raise UsageError(f"--param {shortened(text)}: write NAME=VALUES, for instance frame=1:100")
    if values.startswith("@"):
        return name, _from_file(name, Path(values[1:]))
    try:
        plain_text(values)
    except ValueError as error:
        raise UsageError(f"--param {name}: {error}") from None
    found = [value for item in values.split(",") for value in _item(name, item)]
    if not any(found):
        raise UsageError(f"--param {name}: no value; write {name}=1:100, {name}=a,b,c or {name}=@FILE")
    return name, found


def _item(name: str, item: str) -> list[str]:
    match = _RANGE.fullmatch(item)
    if match is None:
        return [item]
    first, last, step = Decimal(match[1]), Decimal(match[2]), Decimal(match[3] or 1)
    if step == 0 or (last - first) / step < 0:
        raise UsageError(f"--param {name}: {item} is an empty range; write {last}:{first}, or a step of -1")
    if (last - first) / step >= MAX_VALUES:
        raise UsageError(f"--param {name}: {item} is more than {MAX_VALUES:,} values")
    count = int((last - first) // step) + 1
    width = len(match[1]) if match[1].startswith("0") and match[1].isdigit() else 0
    return [str(first + step * index).zfill(width) for index in range(count)]


def _from_file(name: str, path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
        values = [plain_text(line.rstrip("\r")) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"--param {name}: {path}: cannot be read: {problem}") from error
    if not values:
        raise UsageError(f"--param {name}: {path} contains no value")
    return values
