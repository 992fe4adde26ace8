"""A source of answers that a test decides on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adaptor import api
from adaptor.api import (
    AttemptSpan,
    DoneStep,
    FailureView,
    LearnedRuntime,
    OwnStart,
    QueuePicture,
    QueueStep,
    RuntimeBin,
    TaskSums,
)
from adaptor.api.question import A
from adaptor.client.asking import NoAnswerError
from adaptor.errors import AdaptorError, NoDaemonError
from tests.cli.fake_control import daemon_view, pilot_view, running_bag

NOW = 1_700_000_100.0


def site_view(**changes: Any) -> api.SiteView:
    fields: dict[str, Any] = {
        "name": "hpc", "backend": "slurm", "heuristic": "adaptive", "max_in_system": 2, "max_proc": 8,
        "max_tr": 3600.0, "pad": 30.0, "queued": 1, "running": 1, "processors": 16, "observed": NOW - 3,
        "problem": "", "late": 60.0,
    }  # fmt: skip
    return api.SiteView(**(fields | changes))


def picture() -> api.Picture:
    """8 of 16 processors are others' for ten minutes; then all are planned for another ten."""
    steps = [QueueStep(NOW - 3, 8, 0), QueueStep(NOW + 600, 0, 16), QueueStep(NOW + 1200, 0, 0)]
    return api.Picture(
        [
            QueuePicture(
                site="hpc", observed=NOW - 3, processors=16, steps=steps, starts=[OwnStart(2, NOW + 1200)]
            )
        ],
        [LearnedRuntime(bag=7, site="hpc", estimate=12.5)],
        [AttemptSpan(1, 7, 5, 1, NOW - 4, None, "running")],
    )


PILOTS = [
    pilot_view(1, state="running", p=6, tr=500, started=NOW - 50, ended=None, predicted_start=NOW - 55),
    pilot_view(2, state="queued", p=8, tr=600, started=None, ended=None, expected=NOW + 1100),
]
LINE = api.CreditLine(bag=7, budget=10.0, used=1.5, wasted=0.25, reserved=0.5, left=8.0)
SUMS = TaskSums(
    bag=7,
    runtimes=[RuntimeBin(1.0, 2.0, 3), RuntimeBin(2.0, 3.0, 1)],
    progress=[DoneStep(NOW - 50, 0), DoneStep(NOW - 10, 4)],
    failures=[
        FailureView(
            exit_code=3,
            signal=None,
            error=None,
            count=2,
            task=1,
            attempt=1,
            ended=NOW,
            node="n1",
            stderr="/out/1.err",
        )
    ],
    other_failures=0,
)


def answers() -> dict[type, Any]:
    """By kind of question."""
    credits = api.CreditsView(
        sites=[api.CreditLine(site="hpc", used=1.5, wasted=0.25, reserved=0.5)], bags=[LINE], prices=[]
    )
    return {
        api.GetDaemon: daemon_view(),
        api.GetPicture: picture(),
        api.GetSites: [site_view()],
        api.GetLatestBags: api.Bags([running_bag(7, failed=2)]),
        api.GetBags: api.Bags([running_bag(7)]),
        api.GetPilots: PILOTS,
        api.GetCredits: credits,
        api.GetWhy: api.Why(
            [api.Explanation(time=NOW - 9, site="hpc", subject="pilot 1", kind="issued", text="a hole")]
        ),
        api.GetActivity: api.Activity([AttemptSpan(1, 7, 0, 1, NOW - 50, NOW - 40, "result")], []),
        api.GetTaskSums: SUMS,
    }


class Told:
    """Answers as a daemon does while `live`, and as the journal where none runs."""

    def __init__(self, changes: dict[type, Any] | None = None) -> None:
        self.answers = answers() | (changes or {})
        self.live_now = True
        self.lives = False
        """Whether a silent daemon lives, and so keeps the journal."""
        self.asked: list[tuple[str, type]] = []
        self.took: Callable[[type], None] = lambda _: None

    def count(self, kind: type, of: str = "live") -> int:
        return self.asked.count((of, kind))

    def live(self, question: api.Question[A]) -> A:
        if not self.live_now:
            raise (NoAnswerError if self.lives else NoDaemonError)("no daemon is running")
        self.asked.append(("live", type(question)))
        self.took(type(question))
        return self._answer(question)

    def kept(self, question: api.Question[A]) -> A:
        self.asked.append(("kept", type(question)))
        if isinstance(question, api.GetSites | api.GetPicture | api.GetDaemon):
            raise AdaptorError("this needs a running daemon")
        return self._answer(question)

    def _answer(self, question: api.Question[A]) -> A:
        answer = self.answers[type(question)]
        found: A = answer(question) if callable(answer) else answer
        return found
