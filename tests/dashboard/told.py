"""A source of answers that a test decides on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adaptor import views
from adaptor.dashboard.source import Kind, SilentError
from adaptor.errors import AdaptorError
from adaptor.page_views import (
    DoneStep,
    FailureView,
    LearnedRuntime,
    OwnStart,
    QueuePicture,
    QueueStep,
    RuntimeBin,
    Span,
    TaskSums,
)
from adaptor.protocol import control
from tests.cli.fake_control import daemon_view, pilot_view, running_bag

NOW = 1_700_000_100.0


def site_view(**changes: Any) -> views.SiteView:
    fields: dict[str, Any] = {
        "name": "hpc", "backend": "slurm", "heuristic": "adaptive", "max_pending_requests": 2, "max_proc": 8,
        "max_tr": 3600.0, "queued": 1, "running": 1, "processors": 16, "observed": NOW - 3, "problem": "",
        "late": 60.0,
    }  # fmt: skip
    return views.SiteView(**(fields | changes))


def picture() -> control.Picture:
    """8 of 16 processors are others' for ten minutes; then all are planned for another ten."""
    steps = [QueueStep(NOW - 3, 8, 0), QueueStep(NOW + 600, 0, 16), QueueStep(NOW + 1200, 0, 0)]
    return control.Picture(
        [
            QueuePicture(
                site="hpc", observed=NOW - 3, processors=16, steps=steps, starts=[OwnStart(2, NOW + 1200)]
            )
        ],
        [LearnedRuntime(bag=7, site="hpc", estimate=12.5)],
        [Span(1, 7, 5, 1, NOW - 4, None, "running")],
    )


PILOTS = [
    pilot_view(1, state="running", p=6, tr=500, started=NOW - 50, ended=None, predicted_start=NOW - 55),
    pilot_view(2, state="queued", p=8, tr=600, started=None, ended=None, predicted_start=NOW + 1100),
]
LINE = views.CreditLine(bag=7, budget=10.0, used=1.5, wasted=0.25, reserved=0.5, left=8.0)
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
    credits = views.CreditsView(
        sites=[views.CreditLine(site="hpc", used=1.5, wasted=0.25, reserved=0.5)], bags=[LINE], prices=[]
    )
    return {
        control.GetDaemon: control.Daemon(daemon_view()),
        control.GetPicture: picture(),
        control.GetSites: control.Sites([site_view()]),
        control.GetLatestBags: control.Bags([running_bag(7, failed=2)]),
        control.GetBags: control.Bags([running_bag(7)]),
        control.GetPilots: control.Pilots(PILOTS),
        control.GetCredits: control.Credits(credits),
        control.GetWhy: control.Why(
            [views.Explanation(time=NOW - 9, site="hpc", subject="pilot 1", kind="issued", text="a hole")]
        ),
        control.GetActivity: control.Activity([Span(1, 7, 0, 1, NOW - 50, NOW - 40, "result")], []),
        control.GetTaskSums: control.TaskSums(SUMS),
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

    def live(self, question: control.Question, kind: type[Kind]) -> Kind:
        if not self.live_now:
            raise SilentError("no daemon is running", lives=self.lives)
        self.asked.append(("live", type(question)))
        self.took(type(question))
        return self._answer(question, kind)

    def kept(self, question: control.Question, kind: type[Kind]) -> Kind:
        self.asked.append(("kept", type(question)))
        if isinstance(question, control.GetSites | control.GetPicture | control.GetDaemon):
            raise AdaptorError("this needs a running daemon")
        return self._answer(question, kind)

    def _answer(self, question: control.Question, kind: type[Kind]) -> Kind:
        answer = self.answers[type(question)]
        if callable(answer):
            answer = answer(question)
        assert isinstance(answer, kind)
        return answer
