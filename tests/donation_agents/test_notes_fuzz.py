"""Notes on agents that were damaged: left out, and the others are read."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from adaptor.processes.notes import END, JOB, START, note_path, read_note
from adaptor_donation_agents.folders import UserFolder
from adaptor_donation_agents.notes import Notes
from adaptor_donation_agents.records import read_order
from backends.machines.here import Here
from tests.fuzzing import damaged, fuzz, survives

ORDER = (
    '{"tag": "t", "node": "n1", "p": 1, "tr": 60, "grace": 1.0, "worker": ["a"], "environment": {},'
    ' "directory": "/x", "runtime": "/y"}'
)
TEXTS = [
    ORDER,
    '{"started": 2.0}',
    '{"ended": 3.0, "state": "completed", "reason": "", "yielded": null}',
    '{"boot": "b", "since": 1.0}',
]


@fuzz
@given(st.sampled_from((JOB, START, END)), damaged(TEXTS))
def test_a_damaged_note_leaves_the_other_agents(kind: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = text.encode(errors="surrogatepass")
        for tag in ("t", "u"):
            note_path(folder, tag, JOB).write_text(ORDER.replace('"t"', f'"{tag}"'))
        path = note_path(folder, "t", kind)
        path.write_bytes(data)
        notes = Notes(Here(), folder)
        survives(notes.entries)
        assert "u" in [entry.ordered.tag for entry in notes.entries()]
        survives(read_note, path, errors=(ValueError,))
        survives(read_order, path, errors=(ValueError,))
        with UserFolder(os.open(name, os.O_RDONLY), os.getuid()) as own:
            survives(own.read, path.name, errors=(ValueError,))
