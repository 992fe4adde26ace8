"""The variables with which the commands of PBS run, and those that a pilot's submission inherits."""

from __future__ import annotations

import re
from collections.abc import Mapping

_OF_A_JOB = re.compile(r"PBS_(O_\w+|JOB\w+|ENVIRONMENT|NODE\w+|TASKNUM|QUEUE|MOMPORT|ARRAY\w+|CONTAINER\w+)")
"""Stand in the environment of a daemon that itself runs in a job, and mean that job."""

_ANSWERS = {
    "LC_ALL": "C",
    "TZ": "UTC",  # the commands print times in the zone of whoever asks
}

_INHERITED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|TZ|LD_LIBRARY_PATH"
    # Which server is asked, and how.
    r"|PBS_CONF_FILE|PBS_DEFAULT|PBS_(SERVER|PRIMARY|SECONDARY|EXEC|HOME|AUTH|ENCRYPT|COMM|BATCH_SERVICE)\w*"
    r"|KRB5CCNAME|SLURM_CONF"
)


def asking_environment(own: Mapping[str, str]) -> dict[str, str]:
    """For questions: times in UTC, plain words, nothing of a job that we may run in."""
    return {**{key: value for key, value in own.items() if not _OF_A_JOB.fullmatch(key)}, **_ANSWERS}


def submitting_environment(own: Mapping[str, str]) -> dict[str, str]:
    """For qsub, which writes some of its variables into the job where every user can read them."""
    return {key: value for key, value in own.items() if _INHERITED.fullmatch(key)}
