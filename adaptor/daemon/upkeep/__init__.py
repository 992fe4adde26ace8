"""Upkeep of the daemon: it forgets old bags, sends messages about bags, and measures itself."""
