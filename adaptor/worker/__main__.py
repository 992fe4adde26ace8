"""`python -m adaptor.worker`: started by a pilot on each of its nodes."""

from __future__ import annotations

import os
import sys

from adaptor.processes.trees import become_subreaper
from adaptor.worker.agent import Agent
from adaptor.worker.settings import SettingsError, read_settings


def main() -> int:
    """Returns the exit code: 0 after an orderly departure, 75 without a daemon, 78 started wrongly."""
    try:
        settings = read_settings(os.environ)
    except SettingsError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    become_subreaper()
    return Agent(settings, os.environ).run()


if __name__ == "__main__":
    sys.exit(main())
