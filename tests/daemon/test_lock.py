"""One daemon per state directory: who it is can be asked without getting in its way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adaptor.daemon import lock
from adaptor.daemon.lock import holder_of, take_lock
from adaptor.errors import AdaptorError

HOLD = "import sys; from pathlib import Path; from adaptor.daemon.lock import take_lock; "
HOLD += "lock = take_lock(Path(sys.argv[1])); print('held', flush=True); input()"


def test_the_lock_names_its_holder_and_asking_does_not_take_it(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        holder = holder_of(tmp_path)
        assert holder is not None
        assert holder.local
        found = holder.process()
        assert found is not None
        assert found.pid == other.pid
        with pytest.raises(AdaptorError, match=rf"process {other.pid} on .*`adaptor daemon stop` ends it"):
            take_lock(tmp_path)
        other.communicate(b"\n")
    assert holder.process() is None
    assert holder_of(tmp_path) is None


def test_nobody_holds_a_lock_that_was_left_behind(tmp_path: Path) -> None:
    assert holder_of(tmp_path) is None
    take_lock(tmp_path).close()
    assert (tmp_path / lock.LOCK).exists()
    assert holder_of(tmp_path) is None


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / lock.LOCK).symlink_to(victim)
    with pytest.raises(AdaptorError, match="cannot be opened"):
        take_lock(tmp_path)
    assert victim.read_text() == "precious"
