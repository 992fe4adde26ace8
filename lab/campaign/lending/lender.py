"""A user who lends nodes: somebody else than root where the tests are root's, as on a real cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.lab import Lab

UID = 300_000 + os.getpid() % 100_000
"""Has no account, and is nobody else's lender."""


class LenderLab(Lab):
    """A lab that belongs to the lender, whose commands the lender runs."""

    def __init__(self, root: Path, uid: int = UID) -> None:
        super().__init__(root)
        self.uid = uid if os.geteuid() == 0 else os.geteuid()
        self.python = _python_for(self.uid, root / "venv")
        self._env: dict[str, str] = {}
        self.state.mkdir(mode=0o700)
        for path in (self.state, self.work):
            os.chown(path, self.uid, -1)

    def use(self, env: Mapping[str, str]) -> None:
        """Run commands with these variables, too."""
        self._env.update(env)

    def command(self, *arguments: str | Path) -> list[str]:
        words = super().command(*arguments)
        become = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups"]
        return [*(become if self.uid != os.geteuid() else []), self.python, *words[1:]]

    @property
    def environment(self) -> dict[str, str]:
        own = {"HOME": str(self.work), "USER": "lender", "LOGNAME": "lender"}
        return {**super().environment, **self._env, **(own if self.uid != os.geteuid() else {})}


@contextmanager
def folder_for_all() -> Iterator[Path]:
    """A temporary folder that every user can reach."""
    root = Path(tempfile.mkdtemp(prefix="lending-"))
    root.chmod(0o755)
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _python_for(uid: int, folder: Path) -> str:
    """An interpreter that a user may run, with this package: ours, or the system's with our libraries."""
    if uid == os.geteuid() or _runs(sys.executable, uid):
        return sys.executable
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/*/site-packages")
    # With what the .pth files there name: packages that are installed where they are worked on.
    lines = (f"import site; site.addsitedir({p!r})\n" for p in sys.path if p.endswith("site-packages"))
    (packages / "ours.pth").write_text("".join(lines))
    python = str(folder / "bin" / "python")
    if not _runs(python, uid):
        raise RuntimeError("other users have no Python here that can run the adaptor")
    return python


def _runs(python: str, uid: int) -> bool:
    words = [python, "-I", "-c", "import adaptor.daemon.service, adaptor_donation_agents.reclaim"]
    try:
        return (
            subprocess.run(
                words, user=uid, group=uid, extra_groups=[], stderr=subprocess.DEVNULL, cwd="/", check=False
            ).returncode
            == 0
        )
    except OSError:
        return False
