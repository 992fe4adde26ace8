"""Decides which idle nodes are lent preemptibly, for how long, and when they are taken back (pure)."""
