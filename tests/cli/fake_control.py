"""A stand-in for the daemon's side of the command line: a thread with canned answers."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

from adaptor import __version__, api
from adaptor.api import (
    BagInput,
    BagView,
    DaemonView,
    JournalView,
    MeasuredView,
    PilotRecord,
    RatesView,
    TaskView,
    UpkeepView,
)
from adaptor.protocol.access import CLIENT_ACCESS, Access, write_access
from adaptor.protocol.channel import Party
from adaptor.protocol.keys import new_identity
from adaptor.resources import TaskSize
from tests.new_bag import NewBag
from tests.protocol.peers import FrameServer

DEADLINE = 60.0
"""Seconds for what must happen, on a busy machine too."""
Answers = dict[type, Any]
"""By kind of question: an answer, bytes to send as they are, a function of the question, or None: silence."""


NO_ADVICE = api.AdviceView(
    MeasuredView(
        task=TaskSize(), sites=[], done=0, wall=0, longest=0, cpu=0, memory=0, first_tr=None, paid=0, used=0
    ),
    [],
)


class FakeControl:
    """Serves from its construction to `close`; `questions` are those that came."""

    def __init__(self, directory: Path, answers: Answers) -> None:
        self.questions: list[api.Question[Any]] = []
        self.answers: Answers = {
            api.GetDaemon: daemon_view(),
            api.GetUpkeep: upkeep_view(),
            api.GetAdvice: NO_ADVICE,
            api.Open: 0,
            api.Add: lambda question: api.Added(question.first, len(question.tasks)),
            **answers,
        }
        server, client = new_identity("server"), new_identity("client")
        self._frames = FrameServer(
            Party(server, client.certificate, server=True, protocol=api.PROTOCOL), named=False
        )
        self._access = directory / CLIENT_ACCESS
        write_access(
            self._access,
            Access(
                # The first address refuses, as one does that is not reachable from here.
                addresses=("tcp://127.0.0.1:1", f"tcp://127.0.0.1:{self._frames.port}"),
                server=server.certificate,
                own=client,
            ),
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        followers: dict[bytes, api.GetEvents] = {}
        while not self._stop.is_set():
            if self._frames.poll(0.02):
                peer, data = self._frames.receive()
                question = api.decode_question(data)
                self.questions.append(question)
                self._answer(peer, question, followers)
            for peer, following in list(followers.items()):
                self._answer(peer, following, followers)
        self._frames.close()

    def _answer(
        self, peer: bytes, question: api.Question[Any], followers: dict[bytes, api.GetEvents]
    ) -> None:
        followers.pop(peer, None)
        answer = self.answers.get(type(question), api.Failure(f"no answer to {question}"))
        if callable(answer):
            answer = answer(question)
        if answer is not None or isinstance(question, api.Stop):  # whose answer says nothing
            data = answer if isinstance(answer, bytes) else api.encode_answer(answer)
            self._frames.send(peer, data)
        if isinstance(question, api.GetEvents) and question.follow and isinstance(answer, list):
            following = question.after(answer)
            if following is not None:
                followers[peer] = following

    def asked(self, kind: type) -> list[Any]:
        return [question for question in self.questions if isinstance(question, kind)]

    def submitted(self) -> list[NewBag]:
        """The bags that were published, with the tasks that came for them."""
        found = []
        for published in self.asked(api.Publish):
            (opened, *_) = (each for each in self.asked(api.Open) if each.key == published.key)
            tasks = [task for each in self.asked(api.Add) if each.key == published.key for task in each.tasks]
            bag = BagInput(spec=opened.spec, budget=opened.budget, tasks=tasks)
            found.append(NewBag(bag, published.open, published.key, published.resume))
        return found

    def leave(self) -> None:
        """To be called by an answer: be gone without having answered; the port refuses by then."""
        self._frames.refuse()
        self._stop.set()

    def close(self) -> None:
        """Gone as after `kill -9`: the access file stays, and the port refuses by the time we return."""
        self._stop.set()
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()


def daemon_view(pid: int | None = None) -> DaemonView:
    return DaemonView(
        pid=os.getpid() if pid is None else pid,
        host=socket.gethostname(),
        version=__version__,
        started=1_700_000_000.0,
        state_directory="/state",
        workers=2,
    )


def upkeep_view() -> UpkeepView:
    return UpkeepView(
        addresses=["tcp://127.0.0.1:5"],
        journal=JournalView(size=3 << 20, bags=12, oldest=1_690_000_000.0, keep=None, compacting=False),
        rates=RatesView(
            seconds=3600.0, results=50, journal_growth=-2048, scheduler_commands=240, cpu=9.5, memory=48 << 20
        ),
    )


def bag_view(id: int = 7, **changes: Any) -> BagView:
    fields: dict[str, Any] = {
        "id": id,
        "name": "render",
        "state": "done",
        "sites": [],
        "tasks": 10,
        "waiting": 0,
        "running": 0,
        "done": 10,
        "failed": 0,
        "cancelled": 0,
        "retried": 0,
        "submitted": 1_700_000_000.0,
        "ended": 1_700_000_250.0,
        "cpus": 1,
        "mean_runtime": 2.5,
        "output": "/out/adaptor-7",
    }
    return BagView(**(fields | changes))


def running_bag(id: int = 7, **changes: Any) -> BagView:
    fields: dict[str, Any] = {"state": "running", "ended": None, "done": 4, "running": 2, "waiting": 4}
    return bag_view(id, **(fields | changes))


def task_view(task: int = 0, **changes: Any) -> TaskView:
    fields: dict[str, Any] = {
        "bag": 7,
        "task": task,
        "name": None,
        "state": "done",
        "command": f"echo {task}",
        "attempts": 1,
        "attempt": 1,
        "retries": 0,
        "exit_code": 0,
        "signal": None,
        "error": None,
        "wall": 2.5,
        "cpu": 1.0,
        "peak_memory": 17 * 1024**2,
        "started": 1_700_000_000.0,
        "ended": 1_700_000_002.5,
        "peak_gpu_memory": None,
        "node": "n1",
        "stdout": None,
        "stderr": None,
    }
    return TaskView(**(fields | changes))


def pilot_view(id: int = 1, **changes: Any) -> PilotRecord:
    fields: dict[str, Any] = {
        "id": id,
        "site": "hpc",
        "job": "4711",
        "state": "completed",
        "p": 6,
        "tr": 600,
        "node": "",
        "reclaim_time": None,
        "submitted": 1_700_000_000.0,
        "predicted_start": 1_700_000_000.0,
        "started": 1_700_000_005.0,
        "ended": 1_700_000_250.0,
        "reason": "asks 6 × 10m for 10 tasks",
        "end_reason": "",
        "used": 1000.0,
        "wasted": 470.0,
        "workers": 0,
        "note": "",
    }
    return PilotRecord(**(fields | changes))
