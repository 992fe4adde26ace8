"""Donated nodes in words."""

from __future__ import annotations

from adaptor import api
from adaptor.cli.words import duration, plural, printable


def donation_lines(donation: api.DonationView) -> list[str]:
    """`4 donated nodes, 2 other idle nodes; held 3h of processor time: …`, and why there are no more."""
    now = plural(donation.nodes, "donated node")
    if donation.idle is not None:
        now += f", {plural(donation.idle, 'other idle node')}"
    lines = [f"{now}; {used_words(donation)}" if donation.donations else now]
    if donation.reason:
        lines.append(f"no more nodes are donated: {printable(donation.reason)}")
    return lines


def used_words(donation: api.DonationView) -> str:
    """`held 3h of processor time (used 2h 45m, lost 5m), 7 reclaims in 0.20 s (at most 1.10 s)`."""
    words = (
        f"held {duration(donation.held)} of processor time (used {duration(donation.used)}, "
        f"lost {duration(donation.lost)}), {plural(donation.reclaims, 'reclaim')}"
    )
    if donation.latency is None or donation.slowest is None:
        return words
    return f"{words} in {donation.latency:.2f} s (at most {donation.slowest:.2f} s)"
