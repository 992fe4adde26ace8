"""A journal with a bag of many tasks, as a daemon would have written it; used by `bench` too."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from adaptor import api
from adaptor.api import LearnedRuntime, OwnStart, QueuePicture, QueueStep, TaskInput
from adaptor.api.question import A
from adaptor.bag_spec import BagSpec
from adaptor.journal.journal import Journal
from adaptor.journal.queries import answer
from tests.cli.fake_control import daemon_view
from tests.dashboard.told import NOW, site_view
from tests.journal.bags import add_bag

PILOTS = 64
PROCESSORS = 32


def write_journal(directory: Path, tasks: int) -> Journal:
    """Bag 1 of so many tasks, of which nine tenths have ended, in 64 pilots of 32 processors."""
    drawn = random.Random(1)
    journal = Journal(directory)
    spec = BagSpec(name="many", cwd="/", output="/nowhere", environment={})
    add_bag(journal, spec, [TaskInput(command=f"task {number}") for number in range(tasks)], NOW - 3600)
    begin, width = NOW - 3500, 3400.0
    with journal.transaction() as db:
        for pilot in range(1, PILOTS + 1):
            db.execute(
                "INSERT INTO pilot (id, site, tag, job, state, p, tr, submitted, predicted_start, started,"
                " ended, reason) VALUES (?, 'hpc', ?, ?, ?, ?, 3600, ?, ?, ?, ?, ?)",
                (
                    *(pilot, f"tag{pilot}", str(pilot), "running" if pilot > 32 else "completed", PROCESSORS),
                    *(begin - 5, begin, begin, None if pilot > 32 else NOW - 60),
                    f"asks {PROCESSORS} x 1h for {tasks} tasks: the slot free from now for 2h",
                ),
            )
        ended = tasks * 9 // 10
        rows = []
        for task in range(ended):
            wall = drawn.lognormvariate(1.0, 0.8)
            at = begin + width * drawn.random()
            failed = drawn.random() < 0.02
            outcome, code = ("failed", drawn.choice((1, 2, 139))) if failed else ("done", 0)
            rows.append((1, task, 1, 1 + task % PILOTS, "n1", "w", at, outcome, at, at + wall, wall, code))
        db.executemany(
            "INSERT INTO attempt (bag, task, number, pilot, node, worker, leased, outcome, started, ended,"
            " wall, exit_code) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        db.execute("UPDATE task SET attempts = 1, result = 1, state = 'done' WHERE number < ?", (ended,))
        db.execute(
            "UPDATE task SET state = 'failed' WHERE number IN"
            " (SELECT task FROM attempt WHERE outcome = 'failed')"
        )
        db.execute(
            "UPDATE bag SET done = (SELECT COUNT(*) FROM task WHERE state = 'done'),"
            " failed = (SELECT COUNT(*) FROM task WHERE state = 'failed'),"
            " waiting = (SELECT COUNT(*) FROM task WHERE state = 'waiting')"
        )
        db.executemany(
            "INSERT INTO decision (time, site, pilot, kind, text) VALUES (?, 'hpc', ?, 'issued', ?)",
            [(begin, pilot, "asks 32 x 1h: " + "a reason " * 12) for pilot in range(1, PILOTS + 1)],
        )
    return journal


class LargeSource:
    """Answers from a journal as the daemon does, beside a queue of 2,000 steps."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        drawn = random.Random(2)
        steps = [
            QueueStep(NOW + 80.0 * number, drawn.randint(0, 4000), drawn.randint(0, 4000))
            for number in range(2000)
        ]
        self._others: dict[type, Any] = {
            api.GetDaemon: daemon_view(),
            api.GetSites: [site_view(processors=10_000)],
            api.GetPicture: api.Picture(
                [
                    QueuePicture(
                        site="hpc", observed=NOW, processors=10_000, steps=steps, starts=[OwnStart(64, NOW)]
                    )
                ],
                [LearnedRuntime(bag=1, site="hpc", estimate=20.0)],
                [],
            ),
        }

    def live(self, question: api.Question[A]) -> A:
        if question.kept:
            return answer(self._journal.connection, question, NOW)
        told: A = self._others[type(question)]
        return told

    kept = live
