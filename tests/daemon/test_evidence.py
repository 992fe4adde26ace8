"""What pilots leave in their folders."""

from __future__ import annotations

from pathlib import Path

import msgspec

from adaptor.daemon.evidence import KEPT, NOTHING, evidence, prune
from adaptor.protocol.messages import AttemptKey, Ending, Result
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


def test_folders_of_ended_pilots_are_kept_in_moderation(tmp_path: Path) -> None:
    pilots = tmp_path / "pilots"
    for number in range(KEPT + 5):
        (pilots / str(number)).mkdir(parents=True)
    prune(HERE, tmp_path, in_system={0})
    left = sorted(int(path.name) for path in pilots.iterdir())
    assert left == [0, *range(5, KEPT + 5)]
