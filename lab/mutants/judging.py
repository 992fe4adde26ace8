"""Mutants in a copy of the tree, and the tests that notice them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from lab.mutants.cover import Lines, Reach, cover, function_of
from lab.mutants.mutations import Mutant, mutants
from lab.mutants.rooms import LEFT_OUT, ROOT, Room

_COPIED = (
    "adaptor",
    "backends",
    "bench",
    "docs",
    "experiments",
    "fixtures",
    "lab",
    "plugins",
    "skills",
    "tests",
)
_PATIENCE = 20.0
"""Seconds beyond five times what each test, and all tests, take without the mutant: then it is killed."""
_WHOLE_ROOM = 3600.0
"""Seconds for all tests of a room."""


class Verdict(msgspec.Struct, frozen=True):
    file: str
    mutant: Mutant
    reached: bool
    """By a test of the room."""
    killed: bool
    killer: str = ""
    """The first test that failed; empty: none did, or no test began, or time was up."""


class Tree:
    """A copy of the tree in `folder`, without what is made anew; mutants never touch the tree itself."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
        for name in _COPIED:
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        for path in ROOT.iterdir():
            if path.is_file() and path.name != ".git":
                shutil.copy2(path, folder / path.name)

    def pytest(self, arguments: Sequence[str], patience: float, **environment: str) -> tuple[int | None, str]:
        """Exit code (None: it took longer than `patience` seconds) and output."""
        roots = [self.root, self.root / "experiments", *(self.root / "plugins").iterdir()]
        path = os.pathsep.join(map(str, roots))
        output = self.root / "output"
        with output.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", LEFT_OUT, *arguments],
                cwd=self.root,
                env=os.environ | {"PYTHONPATH": path} | environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(patience)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return code, output.read_text(errors="replace")

    @contextlib.contextmanager
    def mutated(self, file: str, mutant: Mutant) -> Iterator[None]:
        path = self.root / file
        source = path.read_text(encoding="utf-8")
        try:
            self._write(path, mutant.apply(source))
            yield
        finally:
            self._write(path, source)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        """A compiled module is current by its size and a time in seconds, which two mutants may share."""
        path.write_text(text, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()


def reach_of(room: Room, tree: Tree, kept: Path) -> Reach:
    """What `kept` has of the room as it is now, or a run of all its tests.

    Raises RuntimeError with the output of pytest if it recorded nothing.
    """
    digest = hashlib.sha256()
    for folder in (room.source, room.tests):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    file = kept / f"{room.name}-{digest.hexdigest()[:16]}.json"
    if not file.exists():
        folder = str(tree.root / room.source)
        recorder = ["-p", "lab.mutants.reach", room.tests]
        _, output = tree.pytest(recorder, _WHOLE_ROOM, REACH_OF=folder, REACH_FILE=str(file.resolve()))
        if not file.exists():
            raise RuntimeError(output)
    return msgspec.json.decode(file.read_bytes(), type=Reach)


def sample(room: Room, count: int, seed: int, below: str = "") -> list[tuple[str, Mutant]]:
    """The same mutants of the room's files for the same seed, as long as the files are the same.

    `below`: only of files whose paths begin so.
    """
    every = [
        (file, mutant)
        for file in room.modules()
        if file.startswith(below)
        for mutant in mutants((ROOT / file).read_text(encoding="utf-8"))
    ]
    chosen = random.Random(f"{room.name} {seed}").sample(every, min(count, len(every)))
    return sorted(chosen, key=lambda one: (one[0], one[1].start))


def verdicts(room: Room, tree: Tree, reach: Reach, chosen: Sequence[tuple[str, Mutant]]) -> Iterator[Verdict]:
    """Of each mutant. Tests that cover the branches come first, then the others, short ones first."""
    first = cover(reach, room.lines_of_tests())
    order = [*first, *sorted(set(reach.branches) - set(first), key=lambda name: reach.seconds[name])]
    lines = Lines(reach)
    for file, mutant in chosen:
        reaching = lines.reaching(file, mutant)
        tests = [name for name in order if name in reaching]
        if not tests:
            yield Verdict(file, mutant, reached=False, killed=False)
            continue
        seconds = [reach.seconds[name] for name in tests]
        options = ["-x", "-p", "lab.mutants.quickly", f"--timeout={_PATIENCE + 5 * max(seconds)}"]
        with tree.mutated(file, mutant):
            code, output = tree.pytest([*options, *tests], _PATIENCE + 5 * sum(seconds))
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE) if code == 1 else None
        killer = function_of(failed[1]) if failed else ""
        yield Verdict(file, mutant, reached=True, killed=code != 0, killer=killer)


def unneeded(room: Room, reach: Reach, judged: Sequence[Verdict]) -> list[str]:
    """Test functions that reach no branch and kill no mutant which those that stay do not."""
    stay = {*cover(reach, room.lines_of_tests()), *(verdict.killer for verdict in judged)}
    return sorted(name for name, branches in reach.branches.items() if branches and name not in stay)
