"""A look after others sees what a first look would, whatever has changed; what stays is made once."""

from __future__ import annotations

import time
from collections.abc import Callable
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.config.schema import SiteConfig
from backends.commands import CommandAnswer
from backends.observed import remembered
from backends.observed.backend import BatchBackend
from backends.observed.remembered import Remembered, Unchanged
from backends.pbs.backend import PbsBackend
from backends.slurm import questions
from backends.slurm.backend import SlurmBackend
from tests.backends.answering import answer_of
from tests.backends.recorded_clusters import Recorded, Said, scenes
from tests.backends.slurm.answers import MARK
from tests.examples import examples

SCENES = {scene.name: scene for scene in scenes() if scene.name in ("26.05", "plain", "02-busy")}
CHANGES = (
    *(
        ("RunTime=00:00:0", "RunTime=00:01:0"),
        ("PENDING", "RUNNING"),
        ("JobState=PENDING", "JobState=RUNNING"),
    ),
    *(("n[3-4]", "n[2-3]"), ("mixed", "drained"), ("AllocMem=", "AllocMem=1"), ("CPULoad=1", "CPULoad=2")),
    *(("Priority", "Resources"), ("NumCPUs=", "NumCPUs=1"), ("MinMemoryCPU=1", "MinMemoryCPU=2")),
    *(("walltime=00:00:1", "walltime=00:01:1"), ("eligible_time=00:00", "eligible_time=00:01")),
    *(("job_state=Q", "job_state=H"), ("job_state=R", "job_state=E"), ("ncpus=", "ncpus=1")),
    *(
        ("state = job-busy", "state = offline"),
        ("Not enough", r"Not \|eligible_time= enough"),
        ("stime", "s"),
    ),
)
"""Words, and what stands in their places after a change."""
Change = tuple[tuple[str, str], int]
changes = st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 5)), max_size=4)


def changed(says: Said, changes: list[Change], gone: int) -> Said:
    """With some words replaced, each at one of its places, and without one of the lines."""

    def answer(program: str, words: str) -> CommandAnswer:
        said = says(program, words)
        if words.startswith(("show config", "show partition")):  # asked every ten minutes
            return said
        text = said.output
        for (old, new), place in changes:
            *before, after = text.split(old, place + 1)
            text = old.join(before) + (new if before else "") + after
        lines = text.splitlines(keepends=True)
        if gone and (program in ("squeue", "sinfo") or " -F dsv" in words):
            text = "".join(line for number, line in enumerate(lines, 1) if number != gone)
        return answer_of(said.status, text, said.errors)

    return answer


def seen(backend: BatchBackend, now: float) -> object:  # type: ignore[type-arg]
    backend._shared.look.forget()
    with (
        mock.patch.object(time, "time", return_value=now),
        mock.patch.object(questions, "_unknown_to_jobs", return_value=MARK),
    ):
        try:
            return backend.queue_state()
        except Exception as problem:
            return repr(problem)


@pytest.mark.parametrize("name", SCENES)
@examples(15)
@given(
    looks=st.lists(st.tuples(changes, st.integers(0, 8), st.sampled_from([0.0, 15.0, 4000.0])), max_size=3)
)
def test_a_later_look_sees_what_a_first_one_would(
    name: str, looks: list[tuple[list[Change], int, float]]
) -> None:
    scene = SCENES[name]
    made = SlurmBackend if scene.backend == "slurm" else PbsBackend
    site = SiteConfig(backend=scene.backend)
    machine = Recorded(scene.says)
    again, now = made(site, machine), scene.now
    seen(again, now)
    for changes, gone, passed in looks:
        now += passed
        machine._says = changed(scene.says, changes, gone)
        assert seen(again, now) == seen(made(site, machine), now)


def test_rows_of_jobs_that_stay_are_made_once() -> None:
    for name in ("26.05", "02-busy"):
        scene = SCENES[name]
        made = SlurmBackend if scene.backend == "slurm" else PbsBackend
        backend = made(SiteConfig(backend=scene.backend), Recorded(scene.says))
        first, second = (seen(backend, scene.now + late) for late in (0.0, 1.0))
        before, after = ({job.id: job for job in state.running} for state in (first, second))  # type: ignore
        assert before.keys() == after.keys()
        assert sum(before[id] is after[id] for id in before) >= len(before) / 2


def test_what_the_last_look_did_not_show_is_forgotten() -> None:
    made = list[str]()
    known = Remembered[str]()
    for shown in (["a", "b"], ["a", "a"], ["a", "b"]):
        blocks = [[text.encode()] for text in shown]
        assert known.of(blocks, lambda text: made.append(text) or text) == shown  # type: ignore[func-returns-value]
    assert made == ["a", "b", "b"]


@given(st.lists(st.text("ab\n", max_size=9)), st.integers(1, 9))
def test_blocks_have_all_pieces(lines: list[str], size: int) -> None:
    printed = "".join(f"{line}\n--" for line in lines).encode()
    with mock.patch.object(remembered, "_BLOCK", size):
        blocks = [*remembered.blocks_of(printed, end=b"\n--")]
    assert [piece for block in blocks for piece in block] == [line.encode() for line in lines]


class Thing:
    """Something that is the same only as itself."""


THINGS = [Thing() for _ in range(200)]
some = st.lists(st.sampled_from(THINGS), unique=True, max_size=200)
same_order = st.sets(st.integers(0, 199)).map(lambda gone: [THINGS[n] for n in range(200) if n not in gone])


@given(st.lists(st.tuples(some | same_order, st.sets(st.integers(0, 199), max_size=5)), max_size=4))
def test_only_what_is_new_or_changed_is_made(looks: list[tuple[list[Thing], set[int]]]) -> None:
    known, before = Unchanged[tuple[Thing, int]](), set[tuple[Thing, int]]()
    for things, odd in looks:
        made, others = list[tuple[Thing, int]](), [int(place in odd) for place in range(len(things))]

        def make(thing: Thing, other: int, made: list[tuple[Thing, int]] = made) -> tuple[Thing, int]:
            made.append((thing, other))
            return thing, other

        expected = [*zip(things, others, strict=True)]
        assert known.of(make, things, others) == expected
        assert made == [each for each in expected if each not in before]
        before = set(expected)


def test_other_conditions_make_all_anew() -> None:
    known, rows, words = Unchanged[str](), [1000.5, 2000.5], ["a", "b"]
    make: Callable[[float, str], str] = "{}{}".format
    first = known.of(make, rows, words, under=1)
    assert [*map(id, known.of(make, rows, words, under=1))] == [*map(id, first)]
    assert set(map(id, known.of(make, rows, words, under=2))).isdisjoint(map(id, first))
