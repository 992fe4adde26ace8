"""Runs one script through sbatch and through `adaptor submit`, each in a folder of its own, and compares."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from adaptor.batch_script import job_number
from lab.campaign.scripts.cases import Case
from lab.campaign.world import words
from tests.clusters.processes import step_processes
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import LONG, Lab
from tests.living import until

SITE = """
    sites:
      hpc:
        backend: slurm
        partition: batch
        limits: {max_pending_requests: 3, max_proc: 8, max_tr: 30m}
        initial_tr: 1m
        idle_timeout: 60
        poll_interval: 2
        max_submissions: 6000/h
"""
SHELL = {"COLOUR": "deep blue", "FLAVOUR": "sweet"}
_ENDED = re.compile(r"JobState=(?:COMPLETED|FAILED|CANCELLED|NODE_FAIL|OUT_OF_MEMORY|TIMEOUT)")
_IDS = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID")


def slurm_with_tmpdir(folder: Path) -> ThrowawaySlurm:
    """A cluster whose prolog, which it writes into a folder, gives each job a `$SLURM_TMPDIR` of its own.

    Its job numbers are none that occur in scripts.
    """
    prolog = folder / "prolog"
    local = folder / "local"
    text = f"mkdir -p {local}/$SLURM_JOB_ID\nchmod 700 {local}/$SLURM_JOB_ID\n"
    prolog.write_text(f"#!/bin/sh\n{text}echo export SLURM_TMPDIR={local}/$SLURM_JOB_ID\n")
    prolog.chmod(0o755)
    return ThrowawaySlurm(ClusterOptions(extra=("FirstJobId=700000", f"TaskProlog={prolog}")))


@dataclass
class Trace:
    """Traces that a script has left behind."""

    codes: dict[int, str] = field(default_factory=dict)
    """Exit codes, as `code:signal`, by index; 0 without an array."""
    files: dict[str, str] = field(default_factory=dict)
    environments: dict[str, dict[str, str]] = field(default_factory=dict)


def compare(case: Case, slurm: ThrowawaySlurm, lab: Lab) -> tuple[list[str], set[str]]:
    """Differences between the traces, in sentences, and the variables that differ, with their two values."""
    theirs = _by_sbatch(case, slurm, prepared(lab.root / "sbatch", case))
    ours = _by_adaptor(case, lab, prepared(lab.root / "adaptor", case))
    return differences(theirs, ours, "sbatch")


def differences(theirs: Trace, ours: Trace, command: str) -> tuple[list[str], set[str]]:
    """As `compare`; `command`: whose trace the first is."""
    found = [
        f"exit code of element {index}: {theirs.codes.get(index)} and {ours.codes.get(index)}"
        for index in sorted({*theirs.codes, *ours.codes})
        if theirs.codes.get(index) != ours.codes.get(index)
    ]
    for name in sorted({*theirs.files, *ours.files}):
        if name not in theirs.files or name not in ours.files:
            found.append(f"the file {name!r} is only with {command if name in theirs.files else 'adaptor'}")
        elif theirs.files[name] != ours.files[name]:
            found.append(f"{name}: {theirs.files[name]!r} and {ours.files[name]!r}")
    found += [f"{name!r} is not written" for name in theirs.environments if name not in ours.environments]
    variables = {
        f"{variable}: {theirs.environments[name].get(variable)} and {ours.environments[name].get(variable)}"
        for name in theirs.environments.keys() & ours.environments.keys()
        for variable in _different(theirs.environments[name], ours.environments[name])
    }
    return found, variables


def _different(theirs: Mapping[str, str], ours: Mapping[str, str]) -> set[str]:
    return {name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name)}


def prepared(above: Path, case: Case) -> Path:
    """A folder with what a script finds."""
    folder = above / re.sub(r"\W+", "-", case.name)
    folder.mkdir(parents=True)
    (folder / "job.sh").write_text(case.text)
    for name in case.folders:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, text in case.files:
        (folder / name).write_text(text)
        if text.startswith("#!"):
            (folder / name).chmod(0o755)
    return folder


def _by_sbatch(case: Case, slurm: ThrowawaySlurm, folder: Path) -> Trace:
    done = subprocess.run(
        ["sbatch", "--parsable", *case.options, "job.sh", *case.arguments],
        cwd=folder, env={**os.environ, **slurm.env, **SHELL}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    job = done.stdout.strip().partition(";")[0]
    lines = until(lambda: _ended_jobs(slurm, job), "its jobs end")
    ids, codes = {}, {}
    for line in lines:
        index = int(_value(line, "ArrayTaskId") or 0)
        ids[index], codes[index] = _value(line, "JobId") or "", _value(line, "ExitCode") or ""
    # The controller knows of the end before the last page of output is on the disk.
    until(lambda: not _steps(slurm, ids.values()), "the processes that write its output end")
    return _trace(folder, case, codes, job, ids)


def _steps(slurm: ThrowawaySlurm, jobs: Iterable[str]) -> list[str]:
    """The titles of the daemons of these jobs' steps that live: `slurmstepd: [7.batch]`."""
    homes = [slurm.home(f"slurmd.{node}") for node in slurm.options.node_names]
    titles = [" ".join(words(process)) for process in step_processes(homes)]
    return [title for title in titles if any(f"[{job}." in title for job in jobs)]


def _ended_jobs(slurm: ThrowawaySlurm, job: str) -> list[str]:
    lines = slurm.run(["scontrol", "show", "job", "-o", job], check=False).splitlines()
    return lines if lines and all(_ENDED.search(line) for line in lines) else []


def _value(line: str, key: str) -> str | None:
    found = re.search(rf"\b{key}=(\S*)", line)
    return found[1] if found else None


def _by_adaptor(case: Case, lab: Lab, folder: Path) -> Trace:
    bag, codes = run_by_adaptor(case, lab, folder)
    ids = {index: str(job_number(bag, task)) for task, index in enumerate(case.elements or (0,))}
    return _trace(folder, case, codes, str(bag), ids)


def run_by_adaptor(case: Case, lab: Lab, folder: Path) -> tuple[int, dict[int, str]]:
    """The number of the bag, and the codes of its elements as `Trace` has them."""
    words = [*case.options, "job.sh", *(("--", *case.arguments) if case.arguments else ())]
    done = subprocess.run(
        lab.command("submit", "--json", *words),
        cwd=folder, env={**lab.environment, **SHELL}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    bag = int(lab.ask("status", "last")["bags"][0]["id"])
    subprocess.run(
        lab.command("watch", "--quiet", str(bag), "--timeout", f"{LONG:.0f}"),
        env=lab.environment,
        capture_output=True,
        check=False,
    )
    return bag, {
        index: f"{task['exit_code'] or 0}:{task['signal'] or 0}"
        for task, index in zip(lab.results(bag), case.elements or (0,), strict=True)
    }


def _trace(folder: Path, case: Case, codes: dict[int, str], job: str, ids: dict[int, str]) -> Trace:
    trace = Trace(codes)
    # With sbatch the last element has the job number of the array, with the adaptor one of its own.
    array = "(array)" if len(ids) > 1 and "%j" not in case.text else "(job)"
    numbers = {**dict.fromkeys(ids.values(), "(job)"), job: array}
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            continue
        name = str(path.relative_to(folder))
        if name.startswith("env-"):
            trace.environments[name] = _environment(path, folder, numbers)
            continue
        for number, word in numbers.items():
            if int(number) in case.elements and "-%a" in case.text:
                continue  # the index of an element, not an id
            name = re.sub(rf"(?<![\d_]){number}(?!\d)", word, name)
        text = _text(path, folder)
        trace.files[name] = "".join(sorted(text.splitlines(keepends=True))) if case.shared else text
    return trace


def _text(path: Path, folder: Path) -> str:
    """Without what srun itself says: the adaptor's says nothing where a step ends."""
    text = re.sub(r"\S*/slurm_script", "(script)", path.read_text().replace(str(folder), "(folder)"))
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("srun: "))


def _environment(path: Path, folder: Path, numbers: Mapping[str, str]) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in path.read_text().split("\0") if entry)
    told = {}
    for name, _, value in pairs:
        if name.startswith("ADAPTOR_"):
            continue
        if name in _IDS:
            value = "(job)" if value in numbers else value
        told[name] = re.sub(r"^n\d$", "(node)", value.replace(str(folder), "(folder)"))
    return told


def print_differences(
    cases: Sequence[Case], compare: Callable[[Case], tuple[list[str], set[str]]], command: str
) -> int:
    """Compare one after the other; the exit code: 0 if outputs, names and exit codes of all are equal."""
    different, variables = 0, set[str]()
    for case in cases:
        found, changed = compare(case)
        variables |= changed
        different += bool(found)
        print(f"{case.name:45} {'; '.join(found) or 'equal'}", flush=True)
    print(f"\n{len(cases) - different} of {len(cases)} equal in outputs, names and exit codes")
    print(f"variables with other values, of {command} and of adaptor:", *sorted(variables), sep="\n  ")
    return 1 if different else 0
