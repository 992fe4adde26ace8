"""`squeue`, `sacct`, `scontrol` and `sinfo`: our jobs behind those of the real command."""

from __future__ import annotations

import getpass
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from adaptor.bagfile.scripts.getopt import OptionError
from adaptor.shims import formats
from adaptor.shims.fields import PARTITION, fields_of, record
from adaptor.shims.in_json import as_json, meta_of, release_of
from adaptor.shims.jobs import ACTIVE, Job, Jobs, split
from adaptor.shims.options import Asked, read
from adaptor.shims.real import asked, found, pass_on, tell

Rows = Callable[[Sequence[Job], bool], Iterable[str]]  # our lines; the second argument: with a header


def squeue(arguments: list[str], _folder: Path) -> int:
    wanted = _read("squeue", arguments)
    jobs = Jobs()
    there = jobs.of(wanted.ids) if wanted.by_id else list(jobs.all(ended=wanted.has("states", "state")))
    if wanted.ids and not there and not wanted.for_scheduler:
        print("slurm_load_jobs error: Invalid job id specified", file=sys.stderr)
        return 1
    if not wanted.has("states", "state"):
        there = [job for job in there if job.state in ACTIVE]
    fields = fields_of(getpass.getuser(), os.getuid())
    text = wanted.value("format") or os.environ.get("SQUEUE_FORMAT")
    if names := wanted.value("Format"):
        columns = formats.of_names(names, fields)
    else:
        usual = formats.SQUEUE_LONG if wanted.has("long") else formats.SQUEUE
        columns = formats.of_letters((text or usual).strip('"'), fields)
    return _print(
        "squeue", wanted, there, lambda some, header: formats.squeue_rows(columns, some, header=header)
    )


def sacct(arguments: list[str], _folder: Path) -> int:
    wanted = _read("sacct", arguments)
    jobs = Jobs()
    there = jobs.of(wanted.ids) if wanted.by_id else list(jobs.all(ended=True))
    since, until = _time(wanted.value("starttime")), _time(wanted.value("endtime"))
    if not wanted.by_id:
        there = [job for job in there if since is None or (job.ended or math.inf) >= since]
        there = [job for job in there if until is None or job.submitted <= until]
    usual = formats.SACCT_BRIEF if wanted.has("brief") else formats.SACCT
    text = wanted.value("format", "fields") or os.environ.get("SACCT_FORMAT") or usual
    columns = formats.of_sacct(text, fields_of(getpass.getuser(), os.getuid()))
    parsable = wanted.has("parsable", "parsable2")
    between = (wanted.value("delimiter") or "|") if parsable else ""
    ends = wanted.has("parsable") and not wanted.has("parsable2")

    def rows(some: Sequence[Job], header: bool) -> Iterable[str]:
        return formats.sacct_rows(columns, some, header=header, between=between, ends=ends)

    return _print("sacct", wanted, there, rows)


def understood(name: str, arguments: list[str]) -> Asked:
    """Read the arguments. The real command takes over if they have an unknown option."""
    try:
        return read(name, arguments)
    except OptionError as error:
        pass_on(name, arguments, str(error) if found(name) is None else "")


def _read(name: str, arguments: list[str]) -> Asked:
    """Read the arguments. The real command takes over if none of our jobs can be meant."""
    wanted = understood(name, arguments)
    if not wanted.for_ours and (found(name) is not None or not wanted.for_scheduler):
        pass_on(name, arguments)
    return wanted


def _time(text: str | None) -> float | None:
    """Epoch seconds; None: none, or in words that need not be followed."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


def _print(name: str, wanted: Asked, jobs: Iterable[Job], rows: Rows) -> int:
    """Print the real answer, if it is wanted, and ours behind it."""
    user, uid = getpass.getuser(), os.getuid()
    chosen = [job for job in jobs if wanted.chooses(job, user, uid)]
    text, code = asked(name, wanted.words()) if wanted.for_scheduler else ("", 0)
    if code and name == "sacct" and not wanted.other_ids and _no_accounting():
        tell("Slurm's own accounting is off: sacct shows tasks of bags alone")
        code = 0
    if wanted.has("json"):
        # One value with both, in the shape of the real answer.
        release = release_of(asked(name, ["--version"])[0])
        told: dict[str, Any] = json.loads(text) if text.strip() else {"jobs": [], "errors": []}
        told.setdefault("meta", meta_of(release))
        common: dict[str, Any] = {"user": user, "uid": uid, "accounting": name == "sacct"}
        told["jobs"] += [as_json(job, **common, release=release) for job in chosen]
        print(json.dumps(told, indent=1))
        return code
    sys.stdout.write(text)
    for line in rows(chosen, not text and not wanted.has("noheader")):
        print(line)
    return code


def _no_accounting() -> bool:
    """Whether the scheduler keeps no records of its jobs, so that `sacct` cannot answer."""
    return _NO_ACCOUNTING.search(asked("scontrol", ["show", "config"])[0]) is not None


_NO_ACCOUNTING = re.compile(
    r"^AccountingStorageType\s*=\s*(?:\(null\)|accounting_storage/none)\s*$", re.MULTILINE
)


def scontrol(arguments: list[str], _folder: Path) -> int:
    """`scontrol show job ID`; what else is asked for one of ours is refused."""
    words = [word for word in arguments if not word.startswith("-")]
    ours, _ = split(word.removeprefix("JobId=").removeprefix("jobid=") for word in words[1:])
    if not ours:
        pass_on("scontrol", arguments)
    if words[0] != "show" or words[1].lower() not in ("job", "jobs", "jobid"):
        tell(
            f"scontrol {words[0]}: job {ours[0].number} is a task of a bag; see adaptor change, cancel, retry"
        )
        return 1
    there = Jobs().of(ours)
    if not there:
        print("slurm_load_jobs error: Invalid job id specified", file=sys.stderr)
        return 1
    one_line = any(word in ("-o", "--oneliner") for word in arguments)
    for job in there:
        text = record(job, user=f"{getpass.getuser()}({os.getuid()})")
        print(" ".join(text.split("\n   ")) if one_line else f"{text}\n")
    return 0


def sinfo(arguments: list[str], _folder: Path) -> int:
    """The real command; where there is none, one partition in its usual format."""
    if found("sinfo") is not None or arguments not in ([], ["-h"]):
        pass_on("sinfo", arguments)
    if not arguments:
        print("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST")
    print(f"{PARTITION + '*':<9} up       infinite      1   idle {PARTITION}")
    return 0
