"""The files that take the output of a batch script's elements: named by its author, as sbatch names them."""

from __future__ import annotations

import os

from adaptor.batch_script import BatchScript, element_of, output_files
from adaptor.protocol.messages import AttemptKey
from adaptor.safe_open import open_folder, open_output
from adaptor.worker.output import TaskFiles, cannot, open_cwd
from adaptor.worker.slots import HeldTask

_NULL = os.devnull


class ScriptOutput:
    """In place of an `OutputFolder`. Files that stay empty stay, as those of sbatch do."""

    has_spare = False
    """No file of one element becomes that of another."""

    def __init__(self, script: BatchScript, node: str) -> None:
        self._script = script
        self._node = node

    def open(self, held: HeldTask) -> TaskFiles:
        """Open what an attempt starts with; missing folders are made.

        Raises:
            CannotStartError: a folder or file is missing, a stranger's, or cannot be written.
            ShortageError: the worker cannot open one more file now.
        """
        cwd = open_cwd(held.cwd)
        handles: list[int] = []
        try:
            element = element_of(self._script, held.key.bag, held.key.task, held.lease.environment)
            out, err = output_files(self._script, element, self._node)
            handles.append(self._open(out))
            handles.append(os.dup(handles[-1]) if err == out else self._open(err))
        except BaseException:
            for handle in (cwd, *handles):
                os.close(handle)
            raise
        out_handle, err_handle = handles
        return TaskFiles(cwd, out_handle, err_handle)

    def name(self, names: tuple[str, str], key: AttemptKey) -> None:
        """Its files have their names from the beginning."""

    def discarded(self, held: HeldTask) -> None:
        """Nothing is left to do."""

    def ended(self, key: AttemptKey, *, spare: bool) -> None:
        """Nothing is left to do."""

    def tidy(self) -> None:
        """Nothing is left to do."""

    def _open(self, path: str) -> int:
        try:
            if path == _NULL:
                return os.open(_NULL, os.O_WRONLY)
            above, name = os.path.split(path)
            os.makedirs(above, exist_ok=True)  # noqa: PTH103 (a path of text, for every start)
            folder = open_folder(above, ours=False)
            try:
                return open_output(name, folder, append=self._script.append)
            finally:
                os.close(folder)
        except (OSError, ValueError) as error:
            raise cannot(f"{path}: the task's output cannot be written", error) from error
