"""Runs of measures in copies of the tree, in which some constants have other values."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import msgspec

from lab.ablation.measures import TRACES, Row
from lab.ablation.table import Constant, change, source
from lab.mutants.judging import Tree
from lab.mutants.rooms import ROOT

_PATIENCE = 600.0
"""Seconds of a measure: a value with which nothing ends is a failure."""


class Variant(msgspec.Struct, frozen=True):
    """The tree with other values of some constants; none: as it is."""

    changes: tuple[tuple[str, str, str], ...] = ()
    """File, name and value."""

    @property
    def title(self) -> str:
        """`budget/provisioning/pacing.py:_LAST = 0.0; …`; empty: the tree as it is."""
        return "; ".join(f"{file}:{name} = {value}" for file, name, value in self.changes)


def variant(constant: Constant, value: str) -> Variant:
    return Variant(((constant.file, constant.name, value),))


Job = tuple[Variant, str]
"""A variant, and the name of a measure."""


class Run(msgspec.Struct, frozen=True):
    """A measure under a variant."""

    variant: str
    measure: str
    rows: list[Row]
    """Empty: it failed, or took too long."""


_tree: Tree | None = None


def _run(job: Job) -> Run:
    """In a process that has a copy of the tree of its own."""
    global _tree
    if _tree is None:
        _tree = Tree(Path(tempfile.mkdtemp(prefix="ablation-")))
        for compiled in (ROOT / "experiments").rglob("*.nb[ci]"):  # of the same sources
            folder = _tree.root / compiled.relative_to(ROOT).parent
            folder.mkdir(exist_ok=True)
            shutil.copy2(compiled, folder)
    changed, measure = job
    by_file = defaultdict[str, list[tuple[str, str]]](list)
    for file, name, value in changed.changes:
        by_file[file].append((name, value))
    with contextlib.ExitStack() as stack:
        for file, pairs in by_file.items():
            text = source(_tree.root, file)
            mutants = sorted((change(text, *pair) for pair in pairs), key=lambda each: -each.start)
            for mutant in mutants:  # the last one first: those before it stay where they are
                stack.enter_context(_tree.mutated(f"adaptor/{file}", mutant))
        return Run(changed.title, measure, _rows(_tree.root, measure))


def _rows(root: Path, measure: str) -> list[Row]:
    path = os.pathsep.join(map(str, (root, root / "experiments")))
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [sys.executable, "-c", "from lab.ablation.measures import print_rows; print_rows()", measure],
            cwd=root,
            env=os.environ | {"PYTHONPATH": path, "ABLATION_TRACES": str(TRACES)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
        if done.returncode == 0:
            return [msgspec.convert(json.loads(line), Row) for line in done.stdout.splitlines()]
    return []


_COLUMNS = ("variant", *Row.__struct_fields__)


def read(file: Path) -> dict[tuple[str, str], list[Row]]:
    """Rows by variant and measure; a run that failed has none."""
    found: dict[tuple[str, str], list[Row]] = {}
    if not file.exists():
        return found
    with file.open(newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            rows = found.setdefault((line.pop("variant"), line["measure"]), [])
            if line["cell"]:
                rows.append(msgspec.convert(line, Row, strict=False))
    return found


def run(jobs: Sequence[Job], file: Path, processes: int) -> Iterator[Run]:
    """Those that the file does not have, added to it one by one."""
    there = read(file)
    left = [job for job in jobs if (job[0].title, job[1]) not in there]
    file.parent.mkdir(parents=True, exist_ok=True)
    with (
        file.open("a", newline="", encoding="utf-8") as output,
        ProcessPoolExecutor(processes) as pool,
    ):
        writer = csv.writer(output)
        if not output.tell():
            writer.writerow(_COLUMNS)
        for done in as_completed([pool.submit(_run, job) for job in left]):
            found = done.result()
            writer.writerows(_lines(found))
            output.flush()
            yield found


def _lines(found: Run) -> Iterable[tuple[object, ...]]:
    if not found.rows:
        return [(found.variant, found.measure, *[""] * (len(_COLUMNS) - 2))]
    return [(found.variant, *msgspec.structs.astuple(row)) for row in found.rows]
