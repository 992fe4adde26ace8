"""Decides requests: queue state → availability profile → free slots → heuristic. Pure code."""
