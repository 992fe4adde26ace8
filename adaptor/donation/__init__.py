"""Decides which idle nodes bags use preemptibly, for how long, and when they leave them (pure)."""
