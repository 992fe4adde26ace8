"""The variables with which the commands of Grid Engine run."""

from __future__ import annotations

import re
from collections.abc import Mapping

_OF_A_JOB = re.compile(
    r"SGE_(O_\w+|TASK_\w+|STD\w+_PATH|CWD_PATH|JOB_SPOOL_DIR|ACCOUNT|BINARY_PATH|CKPT\w+)"
    r"|JOB_(ID|NAME|SCRIPT)|PE(_HOSTFILE)?|NSLOTS|NHOSTS|NQUEUES|QUEUE|REQUEST|REQNAME|RESTARTED"
)
"""Stand in the environment of a daemon that itself runs in a job, and mean that job."""


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """Times in UTC, plain words, nothing of a job that we may run in. qsub hands none of it on (no `-V`)."""
    kept = {key: value for key, value in own.items() if not _OF_A_JOB.fullmatch(key)}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}
