"""Archives in the state directory: which are there, and which no submission waits for any more."""

from __future__ import annotations

import time
from pathlib import Path

from adaptor.bundles.archives import is_there, old_archives
from tests.bundles.staged import archive_of, packed


def test_archives_are_old_once_no_submission_can_wait_for_them(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("hello")
    bundle = packed(tmp_path / "state", tmp_path / "data")
    now = time.time()
    assert not old_archives(tmp_path / "state", now)
    path = archive_of(tmp_path / "state", bundle)
    assert old_archives(tmp_path / "state", now + 7200) == {bundle.digest: path}
    assert not old_archives(tmp_path / "nowhere", now)
    path.chmod(0o644)
    assert not is_there(tmp_path / "state", bundle.digest), "others may have changed it"
