"""A project with a virtual environment, and what is packed of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from adaptor.bag_spec import BUNDLES, Bundle
from adaptor.bundles.archives import archive_name
from adaptor.bundles.packing import pack


def environment(path: Path) -> Path:
    """A small virtual environment as `venv` makes it, without its programs."""
    modules = path / "lib" / "site-packages"
    (path / "bin").mkdir(parents=True)
    modules.mkdir(parents=True)
    (path / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\nversion = 3\n")
    (path / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    script = path / "bin" / "tool"
    script.write_text(f"#!{path}/bin/python\nprint('tool')\n")
    script.chmod(0o755)
    (modules / "fit.py").write_text("NAME = 'fit'\n")
    (modules / "binary.so").write_bytes(b"\0" + os.fsencode(path) + b"\0")
    return path


def packed(state: Path, *paths: Path) -> Bundle:
    state.mkdir(mode=0o700, exist_ok=True)
    return pack([str(path) for path in paths], state, lambda _line: None)


def archive_of(state: Path, bundle: Bundle) -> Path:
    return state / BUNDLES / archive_name(bundle.digest)
