"""`python -m lab.campaign.scripts.with_qsub`: the same for scripts of PBS, on a throwaway OpenPBS."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from adaptor.batch_script import job_number
from lab.campaign.scripts.cases import Case
from lab.campaign.scripts.comparing import (
    SHELL,
    Trace,
    differences,
    prepared,
    print_differences,
    run_by_adaptor,
)
from lab.campaign.scripts.pbs_cases import CASES
from tests.clusters.openpbs import ThrowawayOpenPbs, unavailable
from tests.clusters.openpbs_conf import ClusterOptions
from tests.e2e.lab import Lab
from tests.living import until

SITE = """
    sites:
      hpc:
        backend: pbs
        limits: {max_pending_requests: 3, max_proc: 8, max_tr: 30m}
        initial_tr: 1m
        idle_timeout: 60
        poll_interval: 2
"""
_ID = re.compile(r"\b\d+(?:\[(\d*)\])?\.(?:adaptor|[a-z][\w-]*)\b")
_OURS = {"-J": "--array", "-N": "--name"}
"""By option of qsub: that of `adaptor submit`."""
_BY_SIGNAL = 256
"""Number that OpenPBS adds to the number of a signal that has ended a job."""


def compare(case: Case, pbs: ThrowawayOpenPbs, lab: Lab) -> tuple[list[str], set[str]]:
    """Differences between the traces, in sentences, and the variables that differ, with their two values."""
    theirs = _by_qsub(case, pbs, prepared(lab.root / "qsub", case))
    folder = prepared(lab.root / "adaptor", case)
    options = tuple(_OURS.get(word, word) for word in case.options)
    bag, codes = run_by_adaptor(replace(case, options=options), lab, folder)
    number = str(bag) if case.elements else str(job_number(bag, 0))
    return differences(theirs, _trace(folder, codes, number), "qsub")


def _by_qsub(case: Case, pbs: ThrowawayOpenPbs, folder: Path) -> Trace:
    done = subprocess.run(
        ["qsub", "-V", *case.options, "job.sh"],
        cwd=folder, env={**os.environ, **pbs.env, **SHELL}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    job = done.stdout.strip()
    until(lambda: _ended(pbs, job), "its jobs end")
    time.sleep(2.0)  # the node copies the output after the end
    said = _jobs(pbs, "-t", job) if case.elements else _jobs(pbs, job)
    codes = {}
    for name, told in said.items():
        index = re.search(r"\[(\d*)\]", name)
        if index is None or index[1]:
            code = int(told["Exit_status"])
            codes[int(index[1]) if index else 0] = (
                f"0:{code - _BY_SIGNAL}" if code > _BY_SIGNAL else f"{code}:0"
            )
    return _trace(folder, codes, re.match(r"\d+", job)[0])  # type: ignore[index]


def _jobs(pbs: ThrowawayOpenPbs, *words: str) -> dict[str, dict[str, Any]]:
    told = pbs.run(["qstat", "-x", "-f", "-F", "json", *words], check=False)
    found: dict[str, dict[str, Any]] = json.loads(told).get("Jobs", {})
    return found


def _ended(pbs: ThrowawayOpenPbs, job: str) -> list[str]:
    jobs = _jobs(pbs, job)
    return [*jobs] if jobs and all(each["job_state"] == "F" for each in jobs.values()) else []


def _trace(folder: Path, codes: dict[int, str], number: str) -> Trace:
    """`number`: of the job or the array, in the names of files."""
    trace = Trace(codes)
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            continue
        name = _without_ids(str(path.relative_to(folder)))
        text = path.read_text().replace(str(folder), "(folder)")
        if name.startswith("env-"):
            pairs = (entry.partition("=") for entry in text.split("\0") if entry)
            trace.environments[name] = {
                key: re.sub(r"^n\d$", "(node)", _without_ids(value))
                for key, _, value in pairs
                if not key.startswith("ADAPTOR_")
            }
        else:
            trace.files[re.sub(rf"(?<=\.[oe]){number}(?!\d)", "(job)", name)] = text
    return trace


def _without_ids(text: str) -> str:
    return _ID.sub(lambda match: "(job)" if match[1] is None else f"(job)[{match[1]}]", text)


def main() -> int:
    """The exit code: 0 if outputs, names and exit codes of all scripts are equal."""
    if reason := unavailable():
        print(reason, file=sys.stderr)
        return 2
    chosen = [case for case in CASES if not sys.argv[1:] or case.name in sys.argv[1:]]
    with ThrowawayOpenPbs(ClusterOptions(history=True)) as pbs, tempfile.TemporaryDirectory() as folder:
        os.environ.update(pbs.env)
        lab = Lab(Path(folder))
        lab.configure(SITE)
        try:
            return print_differences(chosen, lambda case: compare(case, pbs, lab), "qsub")
        finally:
            lab.close()


if __name__ == "__main__":
    sys.exit(main())
