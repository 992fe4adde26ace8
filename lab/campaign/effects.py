"""Effects of the tasks of a campaign: each execution leaves lines in a file unknown to the adaptor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.campaign.plan import RETRIES, PlannedTask

SCRIPT = """\
#!/bin/sh
# task.sh EFFECTS SECONDS FAILURES CODE: says when it begins and how it ends; the first FAILURES ends are bad.
say() { echo "$1 $ADAPTOR_TASK_ID $ADAPTOR_ATTEMPT $$ $(date +%s)" >>"$effects/lines"; }
effects=$1
say begin
echo "task $ADAPTOR_TASK_ID, attempt $ADAPTOR_ATTEMPT"
sleep "$2"
if [ "$3" -gt 0 ]; then
    echo x >>"$effects/failures.$ADAPTOR_TASK_ID"
    if [ "$(wc -l <"$effects/failures.$ADAPTOR_TASK_ID")" -le "$3" ]; then
        say fail
        exit "$4"
    fi
fi
say done
"""

OPTIONS = f"#ADAPTOR name=campaign retries={RETRIES} max-lost=0 canary=no"
"""Options of all bags. Many workers are killed here under tasks that are not the cause."""


@dataclass(frozen=True)
class Effect:
    word: str
    """begin, done or fail."""
    task: int
    attempt: int
    process: int
    at: int = 0
    """Second in which it was written."""


class Effects:
    """The folder that the tasks write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read = 0
        self._through: set[int] = set()
        folder.mkdir()
        self._script = folder / "task.sh"
        self._script.write_text(SCRIPT, encoding="utf-8")
        self._script.chmod(0o755)
        self._lines = folder / "lines"
        self._lines.touch()

    def bag(self, tasks: Iterable[PlannedTask]) -> list[str]:
        """The lines of a bag file."""
        return [
            OPTIONS,
            *(f"{self._script} {self.folder} {task.seconds} {task.failures} {task.code}" for task in tasks),
        ]

    def through(self) -> int:
        """Tasks that have ended by themselves at least once; each call reads only what is new."""
        with self._lines.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            word, task, *_ = line.split()
            if word != b"begin":
                self._through.add(int(task))
        return len(self._through)

    def all(self) -> list[Effect]:
        words = (line.split() for line in self._lines.read_text(encoding="utf-8").splitlines())
        return [Effect(word, *map(int, numbers)) for word, *numbers in words]
