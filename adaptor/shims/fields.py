"""What squeue, sacct and scontrol call the parts of a job, and how they write them. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from adaptor.shims.jobs import SHORT, Job

PARTITION = "adaptor"
"""In place of the partition: which one the pilot of a job has is no matter of the job."""
_NEVER = "Unknown"
Field = Callable[[Job], str]


def clock(seconds: float | None, missing: str = _NEVER) -> str:
    """`2026-11-26T16:40:00`, local time."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds)) if seconds is not None else missing


def duration(seconds: float | None, *, whole: bool = True) -> str:
    """`1-02:03:04`; not `whole`: `3:04` where there are no hours, as squeue has it."""
    if seconds is None:
        return "UNLIMITED"
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if not days and not hours and not whole:
        return f"{minutes}:{rest:02}"
    return f"{days}-{hours:02}:{minutes:02}:{rest:02}" if days else f"{hours:02}:{minutes:02}:{rest:02}"


def _left(job: Job) -> str:
    return duration(None if job.limit is None else job.limit - (job.wall or 0), whole=False)


def _where(job: Job) -> str:
    return f"({job.reason})" if job.state == "PENDING" else job.node


def _constant(text: str) -> Field:
    return lambda _job: text


def _exit(job: Job) -> str:
    return f"{job.code}:{job.signal}"


def squeue_fields(user: str, uid: int) -> dict[str, Field]:
    """By the name of `--Format`, in small letters."""
    return {
        "account": _constant("(null)"),
        "arrayjobid": lambda job: str(job.array or job.number),
        "arraytaskid": lambda job: job.index if job.index is not None else "N/A",
        "command": lambda job: job.command.partition(" ")[0],
        "cpus": lambda job: str(job.cpus),
        "dependency": _constant("(null)"),
        "endtime": lambda job: clock(job.ended, "N/A"),
        "exit_code": lambda job: str(job.code),
        "jobarrayid": lambda job: job.id,
        "jobid": lambda job: str(job.number),
        "name": lambda job: job.name,
        "nodelist": lambda job: job.node,
        "numcpus": lambda job: str(job.cpus),
        "numnodes": _constant("1"),
        "numtasks": _constant("1"),
        "partition": _constant(PARTITION),
        "priority": _constant("0"),
        "qos": _constant("(null)"),
        "reason": lambda job: job.reason,
        "reasonlist": _where,
        "starttime": lambda job: clock(job.started, "N/A"),
        "state": lambda job: job.state,
        "statecompact": lambda job: SHORT[job.state],
        "stderr": lambda job: job.stderr,
        "stdout": lambda job: job.stdout,
        "submittime": lambda job: clock(job.submitted),
        "timeleft": _left,
        "timelimit": lambda job: duration(job.limit, whole=False),
        "timeused": lambda job: duration(job.wall or 0, whole=False),
        "userid": _constant(str(uid)),
        "username": _constant(user),
        "workdir": lambda job: job.cwd,
    }


LETTERS = {
    "A": ("jobid", "JOBID"), "B": ("nodelist", "EXEC_HOST"), "C": ("cpus", "CPUS"),
    "D": ("numnodes", "NODES"), "E": ("dependency", "DEPENDENCY"), "F": ("arrayjobid", "ARRAY_JOB_ID"),
    "K": ("arraytaskid", "ARRAY_TASK_ID"), "L": ("timeleft", "TIME_LEFT"), "M": ("timeused", "TIME"),
    "N": ("nodelist", "NODELIST"), "P": ("partition", "PARTITION"), "Q": ("priority", "PRIORITY"),
    "R": ("reasonlist", "NODELIST(REASON)"), "S": ("starttime", "START_TIME"), "T": ("state", "STATE"),
    "U": ("userid", "UID"), "V": ("submittime", "SUBMIT_TIME"), "Z": ("workdir", "WORK_DIR"),
    "a": ("account", "ACCOUNT"), "e": ("endtime", "END_TIME"), "i": ("jobarrayid", "JOBID"),
    "j": ("name", "NAME"), "l": ("timelimit", "TIME_LIMIT"), "o": ("command", "COMMAND"),
    "p": ("priority", "PRIORITY"), "q": ("qos", "QOS"), "r": ("reason", "REASON"),
    "t": ("statecompact", "ST"), "u": ("username", "USER"),
}  # fmt: skip
"""By the letter of `squeue --format`: the field, and its title."""


def sacct_fields(user: str, uid: int) -> dict[str, tuple[str, Field]]:
    """By the name of `sacct --format` in small letters: the title, and what it shows."""
    fields: Mapping[str, Field] = {
        "JobID": lambda job: job.id,
        "JobIDRaw": lambda job: str(job.number),
        "JobName": lambda job: job.name,
        "Partition": _constant(PARTITION),
        "Account": _constant(""),
        "State": lambda job: job.state,
        "ExitCode": _exit,
        "DerivedExitCode": _exit,
        "AllocCPUS": lambda job: str(job.cpus),
        "NCPUS": lambda job: str(job.cpus),
        "ReqCPUS": lambda job: str(job.cpus),
        "NNodes": _constant("1"),
        "AllocNodes": lambda job: str(int(job.started is not None)),
        "ReqNodes": _constant("1"),
        "User": _constant(user),
        "UID": _constant(str(uid)),
        "Submit": lambda job: clock(job.submitted),
        "Eligible": lambda job: clock(job.submitted),
        "Start": lambda job: clock(job.started),
        "End": lambda job: clock(job.ended),
        "Elapsed": lambda job: duration(job.wall or 0),
        "ElapsedRaw": lambda job: str(int(job.wall or 0)),
        "CPUTime": lambda job: duration((job.wall or 0) * job.cpus),
        "CPUTimeRAW": lambda job: str(int((job.wall or 0) * job.cpus)),
        "TotalCPU": lambda job: duration(job.cpu or 0),
        "MaxRSS": lambda job: f"{job.peak_memory // 1024}K" if job.peak_memory is not None else "",
        "NodeList": lambda job: job.node or "None assigned",
        "Timelimit": lambda job: duration(job.limit),
        "TimelimitRaw": lambda job: str(int((job.limit or 0) / 60)),
        "WorkDir": lambda job: job.cwd,
        "Reason": lambda job: job.reason,
    }
    return {title.lower(): (title, field) for title, field in fields.items()}


def record(job: Job, *, user: str) -> str:
    """As `scontrol show job` prints it."""
    array = "" if job.array is None else f" ArrayJobId={job.array} ArrayTaskId={job.index}"
    lines = [
        f"JobId={job.number}{array} JobName={job.name}",
        f"UserId={user} JobState={job.state} Reason={job.reason} Dependency=(null)",
        f"Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode={_exit(job)}",
        f"RunTime={duration(job.wall or 0)} TimeLimit={duration(job.limit)} TimeMin=N/A",
        f"SubmitTime={clock(job.submitted)} EligibleTime={clock(job.submitted)}",
        f"StartTime={clock(job.started)} EndTime={clock(job.ended)} Deadline=N/A",
        f"Partition={PARTITION} NodeList={job.node or '(null)'} BatchHost={job.node or '(null)'}",
        f"NumNodes=1 NumCPUs={job.cpus} NumTasks=1 CPUs/Task={job.cpus}",
        f"Command={job.command.partition(' ')[0]}",
        f"WorkDir={job.cwd}",
        f"StdErr={job.stderr}",
        "StdIn=/dev/null",
        f"StdOut={job.stdout}",
    ]
    return "\n   ".join(lines)


def as_json(job: Job, *, user: str, uid: int, states_as_list: bool, accounting: bool) -> dict[str, Any]:
    """An entry of `jobs` in `squeue --json` or `sacct --json`: what programs look at."""
    state: Any = [job.state] if states_as_list else job.state
    times = {"submission": int(job.submitted), "start": int(job.started or 0), "end": int(job.ended or 0)}
    common = {"job_id": job.number, "name": job.name, "partition": PARTITION}
    if accounting:
        told = {"state": {"current": state, "reason": job.reason}, "user": user, "nodes": job.node}
        times |= {"elapsed": int(job.wall or 0), "limit": int((job.limit or 0) / 60)}
        return {**common, **told, "time": times, "exit_code": {"return_code": job.code}}
    return {
        **common,
        "array_job_id": job.array or 0,
        "array_task_id": int(job.index) if job.index is not None else None,
        "job_state": state,
        "state_reason": job.reason,
        "user_name": user,
        "user_id": uid,
        "submit_time": times["submission"],
        "start_time": times["start"],
        "end_time": times["end"],
        "nodes": job.node,
        "cpus": job.cpus,
        "exit_code": job.code,
        "current_working_directory": job.cwd,
        "standard_output": job.stdout,
        "standard_error": job.stderr,
    }
