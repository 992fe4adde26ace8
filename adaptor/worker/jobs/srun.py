"""Stands in front of Slurm's srun inside tasks: starts the processes of a step within the task's processors.

A step of Slurm's would be one of the pilot's job, with all of the pilot's processors. On the one node of a
task the processes are started here; on several nodes by Slurm's srun, as a step of the pilot's job on the
nodes of the task. In a job of Slurm's own, which a task may have submitted, Slurm's srun takes over.

This file is copied to nodes, with a call of `main` behind it, and run by itself, so it imports the standard
library alone. In one file the steps of all tasks lock a byte for each processor that they use: as in a job of
Slurm, steps that together need more processors than the task has run one after the other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

_FLAGS = frozenset({
    "--exclusive", "--exact", "--unbuffered", "--overlap", "--overcommit", "--oversubscribe", "--quiet",
    "--verbose", "--no-kill", "--kill-on-bad-exit", "--propagate", "--whole", "--disable-status",
    "--external-launcher", "--label", "-u", "-O", "-Q", "-s", "-v", "-K", "-k", "-X", "-l",
})  # fmt: skip
_PERHAPS = frozenset({"--exclusive", "--kill-on-bad-exit", "--propagate"})
"""Flags that may have a value behind `=`."""
_VALUES = {
    "-n": "--ntasks", "-N": "--nodes", "-c": "--cpus-per-task", "-m": "--distribution", "-J": "--job-name",
    "-t": "--time", "-T": "--threads", "-G": "--gpus", "-p": "--partition", "-A": "--account", "-q": "--qos",
    "-D": "--chdir", "-i": "--input", "-o": "--output", "-e": "--error", "-w": "--nodelist",
    "-x": "--exclude", "-r": "--relative", "-W": "--wait",
}  # fmt: skip
_LONG = frozenset({
    "--ntasks-per-node", "--mem", "--mem-per-cpu", "--mem-bind", "--cpu-bind", "--mpi", "--gres",
    "--gpus-per-task", "--gpus-per-node", "--gpu-bind", "--hint", "--open-mode", "--export", "--signal",
    "--accel-bind", "--comment", "--threads-per-core", "--cpu-freq", "--jobid",
})  # fmt: skip
_OVER_NODES = ("--jobid", "--nodes", "--ntasks", "--nodelist", "--exclude", "--relative")
_PAUSE = 0.1  # seconds between two looks for free processors
_GATE = 4095  # the byte of an element that the one step holds which waits for processors
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_MPI = re.compile(rb"MPI_Init|PMI2?_Init|PMIx_Init|libmpi\w*\.so|mpi4py|horovod|using MPI\b|library\(Rmpi\)")
_OF_JOB = re.compile(r"SLURM_(JOB_\w+|JOBID|NODELIST|CPUS_ON_NODE|SUBMIT_\w+|ARRAY_\w+|CLUSTER_NAME)")
"""The variables that are those of the task's job in each of its steps."""
_CONFIGURATION = re.compile(r"SLURM_(CONF|CONF_SERVER|JWT|DEBUG_FLAGS)")
_SIGN = re.compile(r"%(?P<width>\d{0,2})(?P<letter>[AajJnNstux])|%%")
_CHUNK = 1 << 20


class StepError(Exception):
    """The step cannot be started; the message says why."""


@dataclasses.dataclass
class Step:
    """The request of one call of srun."""

    command: list[str]
    processes: int
    cpus: int | None = None  # of each process; None: not said
    name: str = ""
    chdir: str = ""
    input: str = ""
    output: str = ""
    error: str = ""
    append: bool = False
    overlap: bool = False
    overcommit: bool = False
    label: bool = False  # whether the number of its process stands before each line of output
    kill: bool = False  # whether one failure ends all processes
    options: list[str] = dataclasses.field(default_factory=list)
    """Options as they were written, for Slurm's srun; without those that `over_nodes` says itself."""
    nodes: str = ""
    nodelist: str = ""
    variables: dict[str, str] = dataclasses.field(default_factory=dict)


def read(words: Sequence[str], environment: Mapping[str, str]) -> Step:
    """Read the words behind srun. Raises StepError: an option cannot be followed."""
    rest = list(words)
    values: dict[str, str] = {}
    flags: set[str] = set()
    options: list[str] = []
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        name = name.replace("_", "-")
        if name in _FLAGS:
            if equals and name not in _PERHAPS:
                raise _unsupported(word)
            flags.add(name)
            options.append(word)
            continue
        name = _VALUES.get(name, name)
        if name not in _VALUES.values() and name not in _LONG:
            raise _unsupported(word)
        if not equals:
            if not rest:
                raise StepError(f"{word} without a value")
            value = rest.pop(0)
        values[name] = value
        if name not in _OVER_NODES:
            options.append(f"{name}={value}")
    if not rest:
        raise _unsupported("a call without a program")
    return _step(rest, values, flags, options, environment)


def _step(
    command: list[str],
    values: Mapping[str, str],
    flags: set[str],
    options: list[str],
    environment: Mapping[str, str],
) -> Step:
    several = is_over_nodes(environment)
    for name in ("--exclude", "--relative", *(() if several else ("--time", "--signal"))):
        if name in values:
            raise _unsupported(name)
    job = environment.get("SLURM_JOB_ID", "")
    if values.get("--jobid", job) != job:
        raise _unsupported(f"--jobid {values['--jobid']}")
    if not several and values.get("--nodes", "1").partition("-")[0] != "1":
        raise _unsupported(f"--nodes {values['--nodes']}")
    processes = values.get("--ntasks") or environment.get("SLURM_NTASKS")
    if "--ntasks" not in values and "--ntasks-per-node" in values:
        processes = None if several else values["--ntasks-per-node"]
    cpus = values.get("--cpus-per-task")
    text = values.get("--export", "ALL")
    first, *others = text.split(",")
    pairs = [each.partition("=") for each in others]
    if not several and (first.upper() != "ALL" or not all(equals for _, equals, _ in pairs)):
        raise _unsupported(f"--export={text}")
    return Step(
        command,
        _number("--ntasks", processes) if processes else 0 if several else 1,
        None if cpus is None else _number("--cpus-per-task", cpus),
        name=values.get("--job-name", ""),
        chdir=values.get("--chdir", ""),
        input=values.get("--input", ""),
        output=values.get("--output", ""),
        error=values.get("--error", ""),
        append=values.get("--open-mode", "")[:1] in ("a", "A"),
        overlap=bool(flags & {"--overlap", "-s", "--oversubscribe"}),
        overcommit=bool(flags & {"--overcommit", "-O"}),
        label=bool(flags & {"--label", "-l"}),
        kill=bool(flags & {"--kill-on-bad-exit", "-K"}),
        variables={name: value for name, _, value in pairs},
        options=options,
        nodes=values.get("--nodes", ""),
        nodelist=values.get("--nodelist", ""),
    )


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise StepError(f"{name} {text}: not a number above 0")
    return int(text)


def _unsupported(what: str) -> StepError:
    return StepError(f"{what}: not supported inside a task of the adaptor")


def is_over_nodes(environment: Mapping[str, str]) -> bool:
    """True if the task has several nodes."""
    return environment.get("SLURM_JOB_NUM_NODES", "1") != "1"


def over_nodes(step: Step, given: Mapping[str, str], pilot: str) -> tuple[list[str], dict[str, str]]:
    """The words behind Slurm's `srun`, and its environment, for a step on several nodes of the job `pilot`.

    Its processes find the job of the task, as the task itself does. Next to the workers' steps all processors
    of its nodes are theirs, unless the step asks for some of its own.
    """
    nodes = given.get("SLURM_JOB_NODELIST", "").split(",")
    most = _number("--nodes", step.nodes.rpartition("-")[2]) if step.nodes else len(nodes)
    if step.processes:
        most = min(most, step.processes)
    listed = step.nodelist or ",".join(nodes[:most])
    own = {"--exclusive", "--exact"} & {each.partition("=")[0] for each in step.options}
    words = [f"--jobid={pilot}", *([] if own else ["--overlap", "--whole"]), "--mem=0", "--cpu-bind=none"]
    words += [f"--nodes={step.nodes or most}", f"--nodelist={listed}"]
    if step.processes:
        words.append(f"--ntasks={step.processes}")
    elif not any(each.startswith("--ntasks-per-node") for each in step.options):
        words.append(f"--ntasks={most}")
    kept = {name: value for name, value in given.items() if _OF_JOB.fullmatch(name)}
    told = "; ".join(f"export {name}={shlex.quote(value)}" for name, value in sorted(kept.items()))
    environment = {
        name: value
        for name, value in given.items()
        if not name.startswith("SLURM_") or _CONFIGURATION.fullmatch(name)
    }
    return [*words, *step.options, "/bin/sh", "-c", f'{told}; exec "$@"', "sh", *step.command], environment


def processors(step: Step, there: int) -> int:
    """The number of the element's processors that it uses. Raises StepError: it has not that many."""
    needed = step.processes * (step.cpus or 1)
    if step.overcommit:
        return min(needed, there)
    if needed > there:
        why = f"More processors requested than permitted ({needed}; the task has {there})"
        raise StepError(f"Unable to create step: {why}")
    return needed


def environment_of(step: Step, rank: int, given: Mapping[str, str]) -> dict[str, str]:
    """Variables of process number `rank` of a step."""
    count = str(step.processes)
    told = {
        "SLURM_NTASKS": count,
        "SLURM_NPROCS": count,
        "SLURM_TASKS_PER_NODE": count,
        "SLURM_STEP_NUM_TASKS": count,
        "SLURM_STEP_TASKS_PER_NODE": count,
        "SLURM_STEP_NUM_NODES": "1",
        "SLURM_STEP_NODELIST": given.get("SLURM_NODELIST", ""),
        "SLURM_STEP_ID": "0",
        "SLURM_STEPID": "0",
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_NODEID": "0",
        "SLURM_GTIDS": ",".join(map(str, range(step.processes))),
    }
    if step.cpus is not None:
        told["SLURM_CPUS_PER_TASK"] = str(step.cpus)
    if step.name:
        told["SLURM_JOB_NAME"] = step.name
    return {**given, **told, **step.variables}


def file_name(pattern: str, rank: int, given: Mapping[str, str]) -> str:
    """The name of a file of process number `rank`."""
    job = given.get("SLURM_JOB_ID", "")
    known = {
        "A": given.get("SLURM_ARRAY_JOB_ID", job), "a": given.get("SLURM_ARRAY_TASK_ID", "4294967294"),
        "j": job, "J": f"{job}.0", "n": "0", "N": given.get("SLURMD_NODENAME", ""), "s": "0",
        "t": str(rank), "u": given.get("USER", ""), "x": given.get("SLURM_JOB_NAME", ""),
    }  # fmt: skip

    def value(match: re.Match[str]) -> str:
        return known[match["letter"]].zfill(int(match["width"] or 0)) if match["letter"] else "%"

    return _SIGN.sub(value, pattern)


def is_mpi(command: Sequence[str]) -> bool:
    """True if the program, or a script among its first arguments, seems to be one of MPI."""
    program = shutil.which(command[0])
    files = [program, *(word for word in command[1:4] if not word.startswith("-"))]
    return any(_holds_mpi(path) for path in files if path and Path(path).is_file())


def _holds_mpi(path: str) -> bool:
    with contextlib.suppress(OSError), Path(path).open("rb") as file:
        before = b""
        while chunk := file.read(_CHUNK):
            if _MPI.search(before + chunk):
                return True
            before = chunk[-40:]
    return False


def take(slots: str, element: int, wanted: int, there: int) -> int | None:
    """Wait for processors of an element; a descriptor whose locks this process holds.

    A lock goes with its process, and not to what that starts. None: the file system has no locks.
    """
    try:
        handle = os.open(slots, os.O_RDWR | os.O_CLOEXEC)
        first = element * (_GATE + 1)
        fcntl.lockf(handle, fcntl.LOCK_EX, 1, first + _GATE)
        taken: list[int] = []
        while True:
            for slot in range(first, first + there):
                if len(taken) < wanted and slot not in taken:
                    with contextlib.suppress(BlockingIOError, PermissionError):
                        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
                        taken.append(slot)
            if len(taken) == wanted:
                break
            time.sleep(_PAUSE)
        fcntl.lockf(handle, fcntl.LOCK_UN, 1, first + _GATE)
    except OSError:
        return None
    return handle


def main(words: Sequence[str], slots: str, pilot: str, first_job: int) -> int:
    """The exit code.

    Args:
        slots: the file for the locks.
        pilot: the number of the pilot's job in Slurm; empty: another scheduler has started it.
        first_job: the smallest number of a job that is a task.
    """
    given = dict(os.environ)
    try:
        job = given.get("SLURM_JOB_ID", "")
        if list(words) in (["--version"], ["-V"]) or not job.isdigit() or int(job) < first_job:
            _become_real(words, given)
        step = read(words, given)
        if is_over_nodes(given):
            _become_real(*over_nodes(step, given, pilot))
        there = int(given.get("ADAPTOR_CPUS", "1"))
        wanted = processors(step, there)
        if step.processes > 1 and is_mpi(step.command):
            raise StepError(
                f"{step.command[0]} is a program of MPI, whose {step.processes} processes would not find each"
                " other: start it by mpiexec"
            )
        nested = "SLURM_STEP_ID" in given
        piped = step.processes == 1 and _is_pipe(0)  # it may be fed by a step that waits for it
        if not (step.overlap or nested or piped):
            handle = take(slots, int(given.get("SLURM_JOB_ID", "0")), wanted, there)
            if handle is not None:
                os.set_inheritable(handle, True)
        if step.processes == 1 and not step.label:
            _become(step, given)
        return _run_all(step, given)
    except (StepError, OSError) as error:
        print(f"srun: error: {error}", file=sys.stderr)
        return 1


def _become_real(words: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Slurm's own srun: the first in PATH behind this one."""
    own = str(Path(__file__).parent)
    places = [place for place in environment.get("PATH", os.defpath).split(os.pathsep) if place != own]
    program = shutil.which("srun", path=os.pathsep.join(places))
    if program is None:
        raise StepError("no srun of Slurm's is in PATH")
    _usual_signals()
    os.execve(program, ["srun", *words], dict(environment))  # noqa: S606


def _usual_signals() -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a program inherits that
        signal.signal(number, signal.SIG_DFL)


def _is_pipe(handle: int) -> bool:
    try:
        return (os.fstat(handle).st_mode & 0o170000) == 0o010000
    except OSError:
        return False


def _opened(step: Step, rank: int, given: Mapping[str, str], done: dict[str, int]) -> tuple[int, int, int]:
    """Standard input, output and error; `done`: files that other processes of the step have opened."""

    def opened(pattern: str, flags: int) -> int:
        name = os.devnull if pattern == "none" else file_name(pattern, rank, given)
        if flags == os.O_RDONLY:
            return os.open(name, flags)
        if name not in done:
            done[name] = os.open(name, flags, 0o666)
        return done[name]

    writing = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if step.append else os.O_TRUNC)
    source = opened(step.input, os.O_RDONLY) if step.input and step.input != "all" else 0
    out = opened(step.output, writing) if step.output else 1
    return source, out, opened(step.error, writing) if step.error else (out if step.output else 2)


def _become(step: Step, given: Mapping[str, str]) -> NoReturn:
    for number, handle in enumerate(_opened(step, 0, given, {})):
        os.dup2(handle, number)
    if step.chdir:
        os.chdir(step.chdir)
    _usual_signals()
    try:
        os.execvpe(step.command[0], step.command, environment_of(step, 0, given))  # noqa: S606
    except OSError as error:
        raise StepError(f"{step.command[0]}: {error.strerror}") from error


def _run_all(step: Step, given: Mapping[str, str]) -> int:
    """The highest exit code of several processes, as srun's own."""
    blocked = {*_PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    copies, files = _copies_of_input(step), dict[str, int]()
    running: list[subprocess.Popen[bytes]] = []
    labels: list[threading.Thread] = []
    for rank in range(step.processes):
        source, out, error = _opened(step, rank, given, files)
        process = subprocess.Popen(
            step.command,
            env=environment_of(step, rank, given),
            cwd=step.chdir or None,
            stdin=copies[rank] if copies else source,
            stdout=subprocess.PIPE if step.label else out,
            stderr=subprocess.PIPE if step.label else error,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
        )
        running.append(process)
        if process.stdout is not None and process.stderr is not None:
            prefix = f"{rank:>{len(str(step.processes - 1))}}: ".encode()
            pairs = ((process.stdout, out), (process.stderr, error))
            labels += [threading.Thread(target=_label, args=(prefix, *pair)) for pair in pairs]
    for thread in labels:
        thread.start()
    codes: list[int] = []
    while running:
        for process in [each for each in running if each.poll() is not None]:
            running.remove(process)
            codes.append(process.returncode if process.returncode >= 0 else 128 - process.returncode)
            if codes[-1] and step.kill:
                _send(running, signal.SIGTERM)
        if running:
            news = signal.sigwaitinfo(blocked)
            # The worker signals every process of its task by itself; a `kill` of the script means this one.
            if news.si_signo != signal.SIGCHLD and _in_session(news.si_pid):
                _send(running, news.si_signo)
    for thread in labels:
        thread.join()
    return max(codes)


def _label(prefix: bytes, stream: IO[bytes], target: int) -> None:
    for line in stream:
        os.write(target, prefix + line)


def _copies_of_input(step: Step) -> list[IO[bytes]]:
    """Standard input for each process; empty: all may have the same."""
    if step.input not in ("", "all") or not (_is_pipe(0) or Path("/dev/stdin").is_file()):
        return []
    data = sys.stdin.buffer.read()
    copies: list[IO[bytes]] = []
    for _ in range(step.processes):
        copies.append(tempfile.TemporaryFile())  # noqa: SIM115 (closed with the process)
        copies[-1].write(data)
        copies[-1].seek(0)
    return copies


def _in_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == os.getsid(0)
    except OSError:
        return False


def _send(processes: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    for process in processes:
        process.send_signal(number)
