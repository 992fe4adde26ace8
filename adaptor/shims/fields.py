"""Names of the parts of a job in squeue, sacct and scontrol, and the form in which they print them. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from adaptor.shims.jobs import SHORT, Job

PARTITION = "adaptor"  # in place of the partition: which one the pilot of a job has is no matter of the job
_NEVER = "Unknown"
Value = Callable[[Job], str]


class Field(msgspec.Struct, frozen=True):
    """One part of a job."""

    value: Value
    letter: str = ""  # of `squeue --format`; empty: none
    title: str = ""  # of squeue's column
    names: str = ""  # of `squeue --Format`, in small letters, separated by spaces
    sacct: str = ""  # of `sacct --format`, as its titles are written, separated by spaces


def clock(seconds: float | None, missing: str = _NEVER) -> str:
    """Local time: `2026-11-26T16:40:00`."""
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


def _constant(text: str) -> Value:
    return lambda _job: text


def _exit(job: Job) -> str:
    return f"{job.code}:{job.signal}"


def fields_of(user: str, uid: int) -> list[Field]:
    """All parts that squeue and sacct are asked for by name or letter."""
    return [
        Field(lambda job: job.id, "i", "JOBID", "jobarrayid", "JobID"),
        Field(lambda job: str(job.number), "A", "JOBID", "jobid", "JobIDRaw"),
        Field(lambda job: str(job.array or job.number), "F", "ARRAY_JOB_ID", "arrayjobid"),
        Field(lambda job: job.index if job.index is not None else "N/A", "K", "ARRAY_TASK_ID", "arraytaskid"),
        Field(lambda job: job.name, "j", "NAME", "name", "JobName"),
        Field(_constant(user), "u", "USER", "username", "User"),
        Field(_constant(str(uid)), "U", "UID", "userid", "UID"),
        Field(_constant(PARTITION), "P", "PARTITION", "partition", "Partition"),
        Field(_constant("(null)"), "a", "ACCOUNT", "account"),
        Field(_constant("(null)"), "q", "QOS", "qos"),
        Field(_constant("(null)"), "E", "DEPENDENCY", "dependency"),
        Field(_constant("0"), "Q", "PRIORITY", "priority"),
        Field(_constant(""), sacct="Account"),
        Field(lambda job: SHORT[job.state], "t", "ST", "statecompact"),
        Field(lambda job: job.state, "T", "STATE", "state", "State"),
        Field(lambda job: job.reason, "r", "REASON", "reason", "Reason"),
        Field(_where, "R", "NODELIST(REASON)", "reasonlist"),
        Field(lambda job: str(job.code), title="EXIT_CODE", names="exit_code"),
        Field(_exit, sacct="ExitCode DerivedExitCode"),
        Field(lambda job: job.node, "N", "NODELIST", "nodelist"),
        Field(lambda job: job.node, "B", "EXEC_HOST", "batchhost"),
        Field(lambda job: job.node or "None assigned", sacct="NodeList"),
        Field(lambda job: str(job.node.count(",") + 1), "D", "NODES", "numnodes", "NNodes ReqNodes"),
        Field(lambda job: str(job.cpus), "C", "CPUS", "numcpus cpus", "AllocCPUS NCPUS ReqCPUS"),
        Field(lambda job: duration(job.wall or 0, whole=False), "M", "TIME", "timeused"),
        Field(lambda job: duration(job.limit, whole=False), "l", "TIME_LIMIT", "timelimit"),
        Field(_left, "L", "TIME_LEFT", "timeleft"),
        Field(lambda job: clock(job.submitted), "V", "SUBMIT_TIME", "submittime", "Submit Eligible"),
        Field(lambda job: clock(job.started, "N/A"), "S", "START_TIME", "starttime"),
        Field(lambda job: clock(job.ended, "N/A"), "e", "END_TIME", "endtime"),
        Field(lambda job: clock(job.started), sacct="Start"),
        Field(lambda job: clock(job.ended), sacct="End"),
        Field(lambda job: duration(job.wall or 0), sacct="Elapsed"),
        Field(lambda job: str(int(job.wall or 0)), sacct="ElapsedRaw"),
        Field(lambda job: duration(job.limit), sacct="Timelimit"),
        Field(lambda job: str(int((job.limit or 0) / 60)), sacct="TimelimitRaw"),
        Field(lambda job: duration((job.wall or 0) * job.cpus), sacct="CPUTime"),
        Field(lambda job: str(int((job.wall or 0) * job.cpus)), sacct="CPUTimeRAW"),
        Field(lambda job: duration(job.cpu or 0), sacct="TotalCPU"),
        Field(lambda job: f"{(job.peak_memory or 0) // 1024}K" if job.peak_memory else "", sacct="MaxRSS"),
        Field(lambda job: job.cwd, "Z", "WORK_DIR", "workdir", "WorkDir"),
        Field(lambda job: job.command.partition(" ")[0], "o", "COMMAND", "command"),
        Field(lambda job: job.stdout, title="STDOUT", names="stdout"),
        Field(lambda job: job.stderr, title="STDERR", names="stderr"),
    ]


def record(job: Job, *, user: str) -> str:
    """The record of a job in the form of `scontrol show job`."""
    array = "" if job.array is None else f" ArrayJobId={job.array} ArrayTaskId={job.index}"
    lines = [
        f"JobId={job.number}{array} JobName={job.name}",
        f"UserId={user} JobState={job.state} Reason={job.reason} Dependency=(null)",
        f"Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode={_exit(job)}",
        f"RunTime={duration(job.wall or 0)} TimeLimit={duration(job.limit)} TimeMin=N/A",
        f"SubmitTime={clock(job.submitted)} EligibleTime={clock(job.submitted)}",
        f"StartTime={clock(job.started)} EndTime={clock(job.ended)} Deadline=N/A",
        f"Partition={PARTITION} NodeList={job.node or '(null)'} BatchHost={job.node or '(null)'}",
        f"NumNodes={job.node.count(',') + 1} NumCPUs={job.cpus} NumTasks=1 CPUs/Task={job.cpus}",
        f"Command={job.command.partition(' ')[0]}",
        f"WorkDir={job.cwd}",
        f"StdErr={job.stderr}",
        "StdIn=/dev/null",
        f"StdOut={job.stdout}",
    ]
    return "\n   ".join(lines)
