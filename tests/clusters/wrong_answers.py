"""Programs in front of Slurm's that answer wrongly for a while."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.clusters.slurm_accounting import SEARCH_PATH

_TIMED_OUT = "slurm_load_jobs error: Socket timed out on send/recv operation"
WRONG = {
    "squeue": {
        "empty": "exit 0",
        "error": f"echo '{_TIMED_OUT}'; exit 0",
        "half": '"$real" "$@" | sed -n "1~2p"',
        "header": '"$real" "$@" | head -n 1',
        "cut": '"$real" "$@" | head -c 700',
        "banner": 'echo "Warning: your password expires in 33 days"; "$real" "$@"',
    },
    "sbatch": {
        "no": f'"$real" "$@" >/dev/null; echo "sbatch: error: {_TIMED_OUT}" >&2; exit 1',
        "silent": '"$real" "$@" >/dev/null',
        "banner": 'echo "Warning: your password expires in 33 days"; "$real" "$@"; echo "77 messages wait"',
    },
    "scancel": {"lost": "exit 0", "no": f'echo "scancel: error: {_TIMED_OUT}" >&2; exit 1'},
}
"""By program and name, what it does; `real` is Slurm's own."""
ANSWERS = [(program, name) for program, named in WRONG.items() for name in named]


class WrongAnswers:
    """Commands that answer rightly until they get another order."""

    def __init__(self, folder: Path) -> None:
        """`folder` is made."""
        folder.mkdir()
        self._folder = folder
        for program, named in WRONG.items():
            cases = "\n".join(f"{name}) {lines};;" for name, lines in named.items())
            self._log(program).touch()
            path = folder / program
            path.write_text(
                f"#!/bin/bash\nreal={shutil.which(program, path=SEARCH_PATH)}\n"
                f"fault=$(cat {self._fault(program)} 2>/dev/null)\n"
                f'[[ " $* " == *" --me "* ]] && echo "$fault" >>{self._log(program)}\n'
                f'case $fault in\n{cases}\n*) exec "$real" "$@";;\nesac\n'
            )
            path.chmod(0o755)

    @property
    def path(self) -> str:
        """The search path on which they come first."""
        return f"{self._folder}:{SEARCH_PATH}"

    def begin(self, program: str, name: str) -> None:
        self._fault(program).write_text(name)

    def end(self, program: str) -> None:
        self._fault(program).unlink(missing_ok=True)

    def looks(self, program: str, name: str = "") -> int:
        """Number of questions for the user's own jobs that got this answer; empty: the right one."""
        return self._log(program).read_text().splitlines().count(name)

    def _fault(self, program: str) -> Path:
        return self._folder / f"{program}.fault"

    def _log(self, program: str) -> Path:
        return self._folder / f"{program}.asked"
