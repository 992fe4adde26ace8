"""What pilots leave in their folders."""

from __future__ import annotations

from pathlib import Path

import msgspec

from adaptor.daemon.evidence import KEPT, complaints, last_words, prune, unsent_results
from adaptor.link.messages import AttemptKey, Ending, Result


def test_results_are_read_and_damaged_files_are_passed_over(tmp_path: Path) -> None:
    result = Result(AttemptKey(1, 2, 1), Ending.EXITED, started=5.0, wall=1.0, exit_code=0)
    (tmp_path / "unsent-n1-7.msgpack").write_bytes(msgspec.msgpack.encode([result]))
    (tmp_path / "unsent-n2-7.msgpack").write_bytes(b"\xff\x00 not msgpack")
    ((path, results),) = unsent_results(tmp_path)
    assert path.name == "unsent-n1-7.msgpack"
    assert results == [result]


def test_complaints_and_last_words(tmp_path: Path) -> None:
    assert complaints(tmp_path) == last_words(tmp_path) == ""
    (tmp_path / "unreachable-n1.txt").write_text("n1 has not reached the daemon\n")
    (tmp_path / "slurm-5.out").write_text("first\nmodule: command not found\n\n")
    assert complaints(tmp_path) == "n1 has not reached the daemon"
    assert last_words(tmp_path) == "module: command not found"


def test_folders_of_ended_pilots_are_kept_in_moderation(tmp_path: Path) -> None:
    pilots = tmp_path / "pilots"
    for number in range(KEPT + 5):
        (pilots / str(number)).mkdir(parents=True)
    prune(tmp_path, in_system={0})
    left = sorted(int(path.name) for path in pilots.iterdir())
    assert left == [0, *range(5, KEPT + 5)]
