"""Margins and roundings of OpenPBS for the times of requests, in seconds."""

from __future__ import annotations

TIME_RESOLUTION = 1
SLOT_MARGIN = 20
"""10 from our look at the queue to the arrival of the request, 10 for a cycle under way then.

OpenPBS begins a cycle when a request arrives, and uses a hole to the second. Measured on 23.06.06 in front of
a planned job on all nodes: 7 of 7 requests whose walltimes left 10 s to -0.3 s of it started within 0.7 s.
"""
SHRINK_MARGIN = 0
"""OpenPBS cuts a walltime to the second (`tests/backends/pbs/test_shrinking_live.py`)."""
