"""How PBS rounds walltimes, and how much shorter than a free slot a request must be to be started there."""

TIME_RESOLUTION = 1
SLOT_MARGIN = 60
"""Seconds: the schedulers look at the queue every half a minute or so."""
