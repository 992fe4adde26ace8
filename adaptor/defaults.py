"""Defaults that rooms share which must not import each other."""

from __future__ import annotations

RUNTIME_DIRECTORY = "/var/tmp/adaptor-donated"  # noqa: S108  (the node agent checks it before it uses it)
"""The folder of a node for what a reclaim needs, where the configuration names no other."""
REAL_COMMANDS = {"ADAPTOR_SHIMS": "off"}
"""The variable by which commands of `adaptor.shims` in PATH let the scheduler's own run in their place."""
HOW_TO_ADD = {"local": "; to run tasks on this machine, add to its `sites`: `local: {backend: local}`"}
"""By site that exists without a configuration: what messages say where a configuration lacks it."""
