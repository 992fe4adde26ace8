"""A stand-in for `srun`: a step gets one processor, as on a release that obeys a variable of sbatch."""

from __future__ import annotations

import shutil
from pathlib import Path

_SCRIPT = """\
#!/bin/bash
words=()
for word; do [[ $word == --whole ]] || words+=("$word"); done
exec {srun} --exact --cpus-per-task=1 "${{words[@]}}"
"""


def narrow_srun(folder: Path) -> str:
    """The prologue with which a site's pilots use it. It is written into `folder`, which is made."""
    folder.mkdir()
    script = folder / "srun"
    script.write_text(_SCRIPT.format(srun=shutil.which("srun")), encoding="utf-8")
    script.chmod(0o755)
    return f"PATH={folder}:$PATH"
