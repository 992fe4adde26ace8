"""Notes of the local site that a crash or a full disk has damaged: set aside, and the rest is read."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.processes.notes import END, JOB, START, write_once
from adaptor.reports import JobState
from adaptor.resources import Part
from backends.local.store import Job, JobEnd, JobEntry, Start, Store, as_note
from tests.fuzzing import damaged, fuzz, survives

RECORDS: dict[str, Job | Start | JobEnd] = {
    JOB: Job(
        id=1, tag="adaptor-1", p=1, tr=60, holds=Part(node="local", processors=1), memory=1, submitted=1.0,
        directory="/x", worker=("a",), environment={"A": "b"}, grace=1.0, marker="m",
    ),
    START: Start(started=2.0, supervisor={"host": "n1", "boot": "b", "pid": 1, "ticks": 1}, devices=("0",)),
    END: JobEnd(ended=3.0, state=JobState.COMPLETED, exit_code=0),
}  # fmt: skip
TEXTS = [msgspec.json.encode(as_note(record)).decode() for record in RECORDS.values()]


def summary(entry: JobEntry) -> tuple[object, ...]:
    return entry.state, entry.started, entry.ended, entry.limit, entry.reason, entry.nodes


@fuzz
@given(st.sampled_from(sorted(RECORDS)), damaged(TEXTS))
def test_a_damaged_note_leaves_the_other_jobs(kind: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Store(folder, 1.0)
        for id in (1, 2):
            for each, record in RECORDS.items():
                write_once(store.note(id, each), as_note(record))
        store.note(1, kind).write_bytes(text.encode(errors="surrogatepass"))
        survives(store.entries)
        entries, damaged_now = store.entries()
        assert damaged_now == [], "set aside once"
        assert RECORDS[JOB] in [entry.job for entry in entries[-1:]]
        for entry in entries:
            survives(summary, entry)
