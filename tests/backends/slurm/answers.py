"""A Slurm that answers every question of `Questions` from texts, by the name of the question."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from backends.commands import CommandAnswer, Commands
from backends.slurm.parse import FREE_TEXTS, OF_ITS_KIND, OF_ONE_JOB
from tests.backends.answering import answer_of

FIXTURES = Path(__file__).parents[3] / "fixtures" / "slurm"
RELEASES = sorted(folder.name for folder in FIXTURES.iterdir() if folder.name[:1].isdigit())
"""Releases with recorded answers, each of the same scene (`tests.backends.slurm.record`)."""
MARK = "<|>"
"""Stands in texts where a question has a mark that no job knows."""


def squeue_line(values: Mapping[str, str], mark: str = MARK) -> str:
    """Line of squeue for a job; fields that are not given are not available."""
    plain = "".join(f"{values.get(field, 'N/A')}|" for field in (*OF_ONE_JOB, *OF_ITS_KIND))
    return plain + "".join(f"{values.get(field, '(null)')}{mark}" for field in FREE_TEXTS) + "\n"


HEADER = squeue_line({field: field.upper() for field in (*OF_ONE_JOB, *OF_ITS_KIND, *FREE_TEXTS)})
"""Header that squeue prints before all jobs, and if there are none."""


def recorded(release: str, above: Path = FIXTURES) -> Callable[[str], str]:
    """Recorded answer of a release to a question of this name."""
    return lambda question: (above / release / f"{question}.txt").read_text(encoding="utf-8")


class Answers(Commands):
    def __init__(
        self,
        text_of: Callable[[str], str],
        *,
        replaced: Mapping[str, str] | None = None,
        alone: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            text_of: the answer to a question.
            replaced: answers instead of these.
            alone: of jobs that are asked for alone, by their ids.
        """
        super().__init__(dict, 1.0)
        self._text_of = text_of
        self._replaced = replaced or {}
        self._alone = alone
        self.asked_alone: list[str] = []

    def run(self, program: str, *arguments: str) -> CommandAnswer:
        if program == "scontrol" and arguments[1] == "job" and arguments[-1] != "-o":
            self.asked_alone.append(arguments[-1])
            text = self._text("job_details-alone") if self._alone is None else self._alone[arguments[-1]]
        elif program == "squeue":
            found = re.search("Name:0([^,]*),Account:", arguments[-1])
            question = "preempted" if found is None else "own_jobs" if "--me" in arguments else "queue"
            header = "" if "-h" in arguments else HEADER
            text = (header + self._text(question)).replace(MARK, found[1] if found else MARK)
        elif program == "sinfo":
            text = self._text("nodes")
        else:
            text = self._text(_OF_SCONTROL[arguments[1]])
        return answer_of(0, text, "")

    def _text(self, question: str) -> str:
        return self._replaced[question] if question in self._replaced else self._text_of(question)


_OF_SCONTROL = {
    "node": "node_details",
    "job": "job_details",
    "license": "licenses",
    "reservation": "reservations",
    "partition": "partitions",
    "config": "settings",
}
