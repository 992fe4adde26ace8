"""The Python that runs the calls on the nodes: the same as here, unless another is named."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from adaptor.bag_spec import Interpreter


def interpreter(command: str | Sequence[str] | None = None) -> Interpreter:
    """How a node starts Python.

    Args:
        command: a path, or words such as `["apptainer", "exec", "image.sif", "python3"]`, that start the same
            version of Python, which finds its own modules; None: this interpreter with these paths.
    """
    version = ".".join(map(str, sys.version_info[:2]))
    if command is not None:
        return Interpreter((command,) if isinstance(command, str) else tuple(command), version)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    path = tuple(os.path.abspath(each) for each in sys.path)  # noqa: PTH100 (of "" too: the current folder)
    return Interpreter((sys.executable, *flags), version, path)
