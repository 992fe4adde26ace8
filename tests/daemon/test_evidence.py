"""What pilots leave in their folders."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor.daemon.evidence import KEPT, NOTHING, PilotFiles, evidence, own_report, prune
from adaptor.decisions.pilots import Pilot
from adaptor.model import PilotState, Request
from adaptor.protocol.messages import AttemptKey, Ending, Result
from adaptor.reports import JobState
from backends.machines.here import HERE


def left_in(folder: Path, array: Path | None = None) -> PilotFiles:
    return evidence(HERE, {folder: array})[folder]


def test_results_are_read_and_damaged_files_are_passed_over(tmp_path: Path) -> None:
    result = Result(AttemptKey(1, 2, 1), Ending.EXITED, started=5.0, wall=1.0, exit_code=0)
    (tmp_path / "unsent-n1-7.msgpack").write_bytes(msgspec.msgpack.encode([result]))
    (tmp_path / "unsent-n2-7.msgpack").write_bytes(b"\xff\x00 not msgpack")
    (tmp_path / "unsent-n3-7.msgpack").mkdir()
    bad_text = msgspec.msgpack.encode([msgspec.structs.replace(result, error="bad")])
    (tmp_path / "unsent-n4-7.msgpack").write_bytes(bad_text.replace(b"bad", b"\xff\xff\xff"))
    assert left_in(tmp_path).results == [result]


def test_complaints_and_last_words(tmp_path: Path) -> None:
    assert left_in(tmp_path) == left_in(tmp_path / "missing") == NOTHING
    (tmp_path / "unreachable-n1.txt").write_text("n1 has not reached the daemon\n")
    (tmp_path / "slurm-5.out").write_text("first\nmodule: command not found\n\n")
    found = left_in(tmp_path)
    assert found.complaints == "n1 has not reached the daemon"
    assert found.last_words == "module: command not found"


def test_a_worker_is_heard_and_not_the_launcher_that_tells_of_its_end(tmp_path: Path) -> None:
    told = "worker: 1: exec: python9: not found\nsrun: error: n2: task 0: Exited with exit code 127\n"
    (tmp_path / "slurm-5.out").write_text(f"{told}srun: Terminating StepId=5.0\n")
    assert left_in(tmp_path).last_words == "worker: 1: exec: python9: not found"


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
    found = left_in(tmp_path).own_end
    assert found is not None
    pilot = Pilot(id=1, state=PilotState.RUNNING, request=Request(4, 600), job="7.s")
    pilot = pilot.but(started=98.0, granted=600)
    told = own_report(pilot, found)
    assert (told.id, told.state, told.start, told.end) == ("7.s", state, 98.0, end)
    assert own_report(pilot.but(started=None), found).start == 100.0


@pytest.mark.parametrize("text", ["", "0 no 100", "x no 1 2", "0 no 1 2 3", "0 no nan? 2"])
def test_half_a_note_of_an_end_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "pilot-end.txt").write_text(text)
    assert left_in(tmp_path).own_end is None


def test_the_log_of_an_array_speaks_where_a_pilot_has_none_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "slurm-7.out").write_text("slurmstepd: error: cannot enter the folder\n")
    for number, said in (("12", ""), ("13", "no such module\n"), ("14", None)):
        (tmp_path / number).mkdir()
        if said is not None:
            (tmp_path / number / "pilot.out").write_text(said)
    folders = [tmp_path / number for number in ("12", "13", "14", "15")]
    found = evidence(HERE, dict.fromkeys(folders, tmp_path))
    told = "slurmstepd: error: cannot enter the folder"
    assert [found[folder].last_words for folder in folders] == [told, "no such module", told, told]


def test_folders_of_ended_pilots_are_kept_in_moderation(tmp_path: Path) -> None:
    pilots = tmp_path / "pilots"
    for number in range(KEPT + 5):
        (pilots / str(number)).mkdir(parents=True)
    prune(HERE, tmp_path, in_system={0})
    left = sorted(int(path.name) for path in pilots.iterdir())
    assert left == [0, *range(5, KEPT + 5)]


def test_the_folder_of_an_array_stays_while_one_of_its_pilots_is_in_the_system(tmp_path: Path) -> None:
    pilots = tmp_path / "pilots"
    for number in (7, 8):
        (pilots / "7" / str(number)).mkdir(parents=True)
    for number in range(100, 100 + KEPT):
        (pilots / str(number)).mkdir()
    prune(HERE, tmp_path, in_system={7, 8}, ended_in_arrays=[pilots / "7" / "7"])
    assert sorted(path.name for path in (pilots / "7").iterdir()) == ["8"]
    prune(HERE, tmp_path, in_system=set())
    assert not (pilots / "7").exists()
