"""What pilots leave in their folders."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor.daemon.evidence import KEPT, NOTHING, evidence, own_report, prune
from adaptor.decisions.pilots import Pilot
from adaptor.model import PilotState, Request
from adaptor.protocol.messages import AttemptKey, Ending, Result
from adaptor.reports import JobState
from backends.machines.here import HERE


def test_results_are_read_and_damaged_files_are_passed_over(tmp_path: Path) -> None:
    result = Result(AttemptKey(1, 2, 1), Ending.EXITED, started=5.0, wall=1.0, exit_code=0)
    (tmp_path / "unsent-n1-7.msgpack").write_bytes(msgspec.msgpack.encode([result]))
    (tmp_path / "unsent-n2-7.msgpack").write_bytes(b"\xff\x00 not msgpack")
    (tmp_path / "unsent-n3-7.msgpack").mkdir()
    bad_text = msgspec.msgpack.encode([msgspec.structs.replace(result, error="bad")])
    (tmp_path / "unsent-n4-7.msgpack").write_bytes(bad_text.replace(b"bad", b"\xff\xff\xff"))
    assert evidence(HERE, tmp_path).results == [result]


def test_complaints_and_last_words(tmp_path: Path) -> None:
    assert evidence(HERE, tmp_path) == evidence(HERE, tmp_path / "missing") == NOTHING
    (tmp_path / "unreachable-n1.txt").write_text("n1 has not reached the daemon\n")
    (tmp_path / "slurm-5.out").write_text("first\nmodule: command not found\n\n")
    found = evidence(HERE, tmp_path)
    assert found.complaints == "n1 has not reached the daemon"
    assert found.last_words == "module: command not found"


@pytest.mark.parametrize(
    ("text", "state", "end"),
    [
        ("0 no 100 130", JobState.COMPLETED, 130.0),
        ("1 no 100 130", JobState.FAILED, 130.0),
        ("0 yes 100 130", JobState.CANCELLED, 130.0),
        ("0 yes 100 699", JobState.WALLTIME, 699.0),
    ],
)
def test_a_script_says_itself_how_it_ended(tmp_path: Path, text: str, state: JobState, end: float) -> None:
    (tmp_path / "pilot-end.txt").write_text(f"{text}\n")
    found = evidence(HERE, tmp_path).own_end
    assert found is not None
    pilot = Pilot(id=1, state=PilotState.RUNNING, request=Request(4, 600), job="7.s")
    pilot = pilot.but(started=98.0, granted=600)
    told = own_report(pilot, found)
    assert (told.id, told.state, told.start, told.end) == ("7.s", state, 98.0, end)
    assert own_report(pilot.but(started=None), found).start == 100.0


@pytest.mark.parametrize("text", ["", "0 no 100", "x no 1 2", "0 no 1 2 3", "0 no nan? 2"])
def test_half_a_note_of_an_end_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "pilot-end.txt").write_text(text)
    assert evidence(HERE, tmp_path).own_end is None


def test_folders_of_ended_pilots_are_kept_in_moderation(tmp_path: Path) -> None:
    pilots = tmp_path / "pilots"
    for number in range(KEPT + 5):
        (pilots / str(number)).mkdir(parents=True)
    prune(HERE, tmp_path, in_system={0})
    left = sorted(int(path.name) for path in pilots.iterdir())
    assert left == [0, *range(5, KEPT + 5)]
