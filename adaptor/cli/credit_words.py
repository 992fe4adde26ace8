"""Credits in words."""

from __future__ import annotations

from adaptor import views
from adaptor.cli.words import clock, duration


def amount(credits: float | None) -> str:
    """`12.5`, `1,200`, `0.0012`; `-` for None. Below a credit four digits, else two."""
    if credits is None:
        return "-"
    digits = 4 if abs(credits) < 1 else 2
    text = f"{credits:,.{digits}f}".rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"


def credit_line(line: views.CreditLine) -> str:
    """`credits: used 1.2 (1 for results, 0.2 wasted), reserved 0.5, left 8.3 of 10`."""
    wasted = line.wasted or 0.0
    parts = [f"used {amount(line.used)} ({amount(line.used - wasted)} for results, {amount(wasted)} wasted)"]
    if line.reserved:
        parts.append(f"reserved {amount(line.reserved)}")
    if line.left is not None:
        parts.append(f"left {amount(line.left)} of {amount(line.budget)}")
    return f"credits: {', '.join(parts)}"


def forecast_line(ahead: views.ForecastView) -> str:
    """`will cost about 12.3 credits (11 to 14.2), done about 14:05:10 (13:58:00 to 14:20:00)`."""
    low, high = amount(ahead.cost_low), amount(ahead.cost_high)
    parts = [f"will cost about {amount(ahead.cost)} credits ({low} to {high})"]
    if ahead.end is not None:
        parts.append(f"done about {clock(ahead.end)} ({clock(ahead.end_low)} to {clock(ahead.end_high)})")
    if ahead.deadline is not None:
        parts.append(f"deadline {clock(ahead.deadline)}{_lateness(ahead)}")
    if ahead.in_file_order:
        parts.append("if the tasks that have run are like the others: they run in the order of the file")
    return ", ".join(parts)


def _lateness(ahead: views.ForecastView) -> str:
    if ahead.end is None or ahead.deadline is None or ahead.end <= ahead.deadline:
        return ""
    return f", about {duration(ahead.end - ahead.deadline)} late"
