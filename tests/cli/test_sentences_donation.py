"""Donated nodes in words."""

from __future__ import annotations

import msgspec

from adaptor.api import DonationView
from adaptor.cli.sentences import donation_lines, used_words

VIEW = DonationView(
    nodes=2, donations=5, held=216.0, used=135.0, lost=12.0, reclaims=1, latency=0.25, slowest=0.5
)


def test_what_donated_nodes_were_used_for() -> None:
    held = "held 3m 36s of processor time (used 2m 15s, lost 12s), 1 reclaim"
    assert used_words(VIEW) == f"{held} in 0.25 s (at most 0.50 s)"
    assert used_words(msgspec.structs.replace(VIEW, latency=None)) == held


def test_the_lines_of_a_site() -> None:
    before = msgspec.structs.replace(VIEW, nodes=1, donations=0, idle=3, reason="max_nodes is 1")
    assert donation_lines(before) == [
        "1 donated node, 3 other idle nodes",
        "no more nodes are donated: max_nodes is 1",
    ]
    assert donation_lines(VIEW) == [f"2 donated nodes; {used_words(VIEW)}"]
