"""Numbers and durations with bounds, and the words for a value outside them.

msgspec checks the bounds of numbers. It cannot check those of a `Duration`, a type of ours: these stand in
`Meta.extra`, and `out_of_range` checks them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec import inspect as types

from adaptor.units import Duration, format_duration

MOST = 1_000_000_000  # of anything that is counted: beyond it is a typing error

PositiveCount = Annotated[int, Meta(gt=0, le=MOST)]
GpuNumber = Annotated[int, Meta(ge=0, le=1000)]
GpuId = (
    Annotated[int, Meta(ge=0, le=1000)] | Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:/-]+$", max_length=100)]
)
"""The number of a device, or a UUID."""
PortNumber = Annotated[int, Meta(ge=0, le=65535)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
PositiveFraction = Annotated[float, Meta(gt=0, le=1)]
Credits = Annotated[float, Meta(ge=1e-6, le=1e9)]  # the ledger counts in millionths
PositiveDuration = Annotated[Duration, Meta(extra={"gt": 0})]
AtLeastASecond = Annotated[Duration, Meta(extra={"ge": 1})]
KeptFor = Annotated[Duration, Meta(extra={"ge": 1})]
ChargingUnit = Annotated[Duration, Meta(extra={"ge": 1, "le": 3600, "multiple_of": 1})]


class KeyBounds(msgspec.Struct, frozen=True):
    """The bounds of `msgspec.Meta`, by its names; None: no bound."""

    gt: float | None = None
    ge: float | None = None
    le: float | None = None
    multiple_of: float | None = None
    duration: bool = False

    def hold(self, value: float) -> bool:
        return not (
            (self.gt is not None and not value > self.gt)
            or (self.ge is not None and not value >= self.ge)
            or (self.le is not None and not value <= self.le)
            or (self.multiple_of is not None and value % self.multiple_of)
        )

    def words(self) -> str:
        """`must be more than 0 and at most 1`, `must be from 0 to 65535`."""
        low = self.gt if self.gt is not None else self.ge
        kind = "whole seconds " if self.multiple_of == 1 and self.duration else ""
        if self.ge is not None and self.le is not None:
            return f"must be {kind}from {self._shown(self.ge)} to {self._shown(self.le)}"
        parts = []
        if low is not None:
            shown = self._shown(low)
            parts.append(f"more than {shown}" if self.gt is not None else f"{shown} or more")
        if self.le is not None:
            parts.append(f"at most {self._shown(self.le)}")
        return f"must be {kind}{' and '.join(parts)}"

    def _shown(self, bound: float) -> str:
        if self.duration and bound:
            return format_duration(bound)
        return f"{bound:f}".rstrip("0").rstrip(".")


def bounds_of(kind: types.Type) -> KeyBounds | None:
    """The bounds of a field's type; None: it has none."""
    match kind:
        case types.UnionType():
            return next(filter(None, map(bounds_of, kind.types)), None)
        case types.Metadata():
            return KeyBounds(**kind.extra, duration=True) if kind.extra else bounds_of(kind.type)
        case types.IntType() | types.FloatType():
            return KeyBounds(kind.gt, kind.ge, kind.le)
    return None


def struct_of(kind: types.Type) -> types.StructType | types.DictType | None:
    """The struct or mapping of a field's type; None: it is something else."""
    match kind:
        case types.UnionType():
            for each in kind.types:
                if found := struct_of(each):
                    return found
        case types.Metadata():
            return struct_of(kind.type)
        case types.StructType() | types.DictType():
            return kind
    return None


def out_of_range(kind: types.Type, value: Any, path: str) -> Iterator[tuple[str, KeyBounds]]:
    """The paths of durations outside their bounds below `value`, which has passed all checks of msgspec."""
    inner = struct_of(kind)
    if isinstance(value, Duration):
        bounds = bounds_of(kind)
        if bounds is not None and not bounds.hold(value):
            yield path, bounds
    elif isinstance(value, Mapping) and isinstance(inner, types.DictType):
        for key, each in value.items():
            yield from out_of_range(inner.value_type, each, f"{path}.{key}")
    elif isinstance(inner, types.StructType) and value is not None:
        for field in inner.fields:
            yield from out_of_range(field.type, getattr(value, field.name), f"{path}.{field.encode_name}")
