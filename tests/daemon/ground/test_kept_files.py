"""Files that commands and workers need come back if somebody removes or changes them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from adaptor.daemon.ground.kept_files import KeptFiles


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "access-client.json"
    path.write_bytes(b"the key")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("content", [None, b"", b"another"])
def test_a_file_is_written_again(path: Path, content: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    kept = KeptFiles()
    kept.keep(path)
    kept.restore()
    assert not caplog.text
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    kept.restore()
    assert path.read_bytes() == b"the key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(path) in caplog.text
    kept.restore()
    assert caplog.text.count("written again") == 1


def test_one_that_was_touched_only_stays(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = KeptFiles()
    kept.keep(path)
    path.touch()
    number = path.stat().st_ino
    kept.restore()
    assert path.stat().st_ino == number
    assert not caplog.text


def test_one_that_was_dropped_may_go(path: Path) -> None:
    kept = KeptFiles()
    kept.keep(path)
    kept.drop(path)
    path.unlink()
    kept.restore()
    assert not path.exists()


def test_what_cannot_be_written_now_is_written_later(path: Path, tmp_path: Path) -> None:
    kept = KeptFiles()
    kept.keep(path)
    away = tmp_path.with_name(f"{tmp_path.name}-away")
    tmp_path.rename(away)
    with pytest.raises(OSError, match="No such file"):
        kept.restore()
    away.rename(tmp_path)
    path.unlink()
    kept.restore()
    assert path.read_bytes() == b"the key"
