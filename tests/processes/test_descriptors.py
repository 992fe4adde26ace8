"""The daemon takes all descriptors that it may have; what it starts has the limit that its user knows."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import resource, subprocess, sys
from pathlib import Path
from adaptor.processes.commands import raise_limit, with_usual_limit
hard = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
print(with_usual_limit(["sh", "-c", "ulimit -S -n"])[0])
print(raise_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
say = with_usual_limit(["sh", "-c", "ulimit -S -n; ulimit -H -n; printf %s \\"$0\\"", "a b"])
print(subprocess.run(say, capture_output=True, text=True).stdout)
from backends.machines.here import HERE
print(HERE.run(["sh", "-c", "ulimit -S -n"], HERE.variables(), 30).output)
"""


def test_raised_for_us_and_as_usual_for_what_we_start() -> None:
    words = [sys.executable, "-c", _PROGRAM, "1000"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout.split()
    assert said == ["sh", "1000", "1000", "1000", "100", "1000", "a", "b", "100"]
