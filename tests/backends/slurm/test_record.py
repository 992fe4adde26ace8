"""The Slurm that is installed answers as the recorded releases do, or says in which words it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.slurm.checking import unknown_answers
from backends.slurm.placing.job_details import JobDetail
from backends.slurm.questions import Questions, read
from tests.backends.slurm.answers import RELEASES, Answers, recorded
from tests.backends.slurm.record import record

pytestmark = pytest.mark.slurm


def details(questions: Questions) -> dict[str, JobDetail]:
    """Of the jobs of the scene, by name; of an array, what waits."""
    seen = read(questions)
    return {row.name: seen.job_details.found[row.id] for row in reversed(seen.jobs)}


def test_the_scene_of_this_release_is_read_as_that_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", "")  # so that it is as it was, afterwards
    folder = record(tmp_path)
    here = Questions(Answers(recorded(folder.name, tmp_path)))
    assert unknown_answers({}, read(here), here.partitions()) == []
    found, known = details(here), details(Questions(Answers(recorded(RELEASES[-1]))))
    names = found.keys() & known.keys()
    assert len(names) >= 25
    assert {name: found[name].parts for name in names} == {name: known[name].parts for name in names}
    assert {name: found[name].exclusive for name in names} == {name: known[name].exclusive for name in names}
