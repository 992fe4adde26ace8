"""Scripts as the command line hands them on."""

from __future__ import annotations

from typing import Any

from adaptor.bagfile.scripts.script import ScriptBag, Submission, script_bag
from adaptor.config.schema import SiteConfig


def bag_of(*lines: str, **values: Any) -> ScriptBag:
    """The bag of a script of these lines, submitted as job.sh in /here, where there is one site."""
    environment, sites = {"PATH": "/bin", "COLOUR": "blue"}, {"only": SiteConfig(backend="slurm")}
    given: dict[str, Any] = {"environment": environment, "sites": sites, **values}
    submission = Submission(folder="/here", user="ada", host="login1", home="/home/ada", **given)
    text = "".join(f"{line}\n" for line in ("#!/bin/bash", *lines, "hostname"))
    return script_bag(text.encode(), "job.sh", "job.sh", submission)
