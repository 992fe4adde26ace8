"""An installed distribution that registers a type of batch scheduler, as a folder for Python's path."""

from __future__ import annotations

from pathlib import Path


def installed(folder: Path, name: str, code: str, registered: str = "") -> Path:
    """Put the module `backend_NAME` there, whose `TYPE` is registered as `registered` or NAME; the folder."""
    (folder / f"backend_{name}.py").write_text(code, encoding="utf-8")
    metadata = folder / f"backend_{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: backend-{name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[adaptor.backends]\n{registered or name} = backend_{name}:TYPE\n"
    )
    return folder
