"""Defaults that rooms share which must not import each other."""

from __future__ import annotations

RUNTIME_DIRECTORY = "/var/tmp/adaptor-donated"  # noqa: S108  (the node agent checks it before it uses it)
"""The folder of a node for what a reclaim needs, where the configuration names no other."""

ASSUMED_RUNTIME = {"static": 3600.0, "adaptive": 3600.0, "rollout": 60.0}
"""By heuristic: seconds that a task is taken to run before anything is known of it. De Rose et al. (2008,
§4.4) take an hour; rollout thinks of this time and of all its doublings."""
