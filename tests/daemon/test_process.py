"""A daemon that cannot start says why, even where nothing can be written."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from adaptor.daemon import process
from adaptor.errors import AdaptorError
from adaptor.protocol.state_directory import private_directory


def test_on_a_full_disk_a_start_says_why(tmp_path: Path) -> None:
    """A limit of file sizes stands for the disk: not a byte can be written, and no reason kept in a file."""
    config = tmp_path / "site.yaml"
    config.write_text("sites: {here: {backend: local, processors: 1}}\n")
    private_directory(tmp_path / "state")
    child = os.fork()
    if child == 0:
        code = 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        try:
            process.start(tmp_path / "state", str(config))
        except AdaptorError as error:
            code = 0 if "cannot be locked and written: File too large" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
