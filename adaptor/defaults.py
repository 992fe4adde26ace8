"""Defaults that rooms share which must not import each other."""

from __future__ import annotations

RUNTIME_DIRECTORY = "/var/tmp/adaptor-donated"  # noqa: S108  (the node agent checks it before it uses it)
"""The folder of a node for what a reclaim needs, where the configuration names no other."""
REAL_COMMANDS = {"ADAPTOR_SHIMS": "off"}
"""The variable by which commands of `adaptor.shims` in PATH let the scheduler's own run in their place."""
FIRST_JOB = 2**27 + 2**26
"""The smallest job number of a task (`batch_script.job_number`)."""
SHIM_RULES = "shims.json"
"""The file by which a folder of `adaptor.shims` is known; it has their rules."""
HOW_TO_ADD = {"local": "; to run tasks on this machine, add to its `sites`: `local: {backend: local}`"}
"""Ends of messages by site that exists without a configuration, for a configuration that lacks it."""
