"""Lent time in the words that people read."""

from __future__ import annotations

from adaptor import views
from adaptor.cli.words import duration, plural, printable


def lending_lines(lending: views.LendingView) -> list[str]:
    """`4 nodes lent, 2 idle besides; lent 3h of processor time: …`, and why there are not more."""
    now = f"{plural(lending.nodes, 'node')} lent"
    if lending.idle is not None:
        now += f", {lending.idle} idle besides"
    lines = [f"{now}; {lent_words(lending)}" if lending.leases else now]
    if lending.reason:
        lines.append(f"no more are lent: {printable(lending.reason)}")
    return lines


def lent_words(lending: views.LendingView) -> str:
    """`lent 3h of processor time (used 2h 45m, lost 5m), 7 reclaims in 0.20 s (at most 1.10 s)`."""
    words = (
        f"lent {duration(lending.lent)} of processor time (used {duration(lending.used)}, "
        f"lost {duration(lending.lost)}), {plural(lending.reclaims, 'reclaim')}"
    )
    if lending.latency is None or lending.slowest is None:
        return words
    return f"{words} in {lending.latency:.2f} s (at most {lending.slowest:.2f} s)"
