"""Credits in words."""

from __future__ import annotations

from adaptor import api


def amount(credits: float | None) -> str:
    """`12.5`, `1,200`, `0.0012`; `-` for None. Below a credit four digits, else two."""
    if credits is None:
        return "-"
    digits = 4 if abs(credits) < 1 else 2
    text = f"{credits:,.{digits}f}".rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"


def credit_line(line: api.CreditLine) -> str:
    """`credits: used 1.2 (1 for results, 0.2 wasted), reserved 0.5, left 8.3 of 10`."""
    wasted = line.wasted or 0.0
    parts = [f"used {amount(line.used)} ({amount(line.used - wasted)} for results, {amount(wasted)} wasted)"]
    if line.reserved:
        parts.append(f"reserved {amount(line.reserved)}")
    if line.left is not None:
        parts.append(f"left {amount(line.left)} of {amount(line.budget)}")
    return f"credits: {', '.join(parts)}"
