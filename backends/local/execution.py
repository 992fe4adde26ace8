"""One job's worker, from its start to the end of its last process. Standard library only."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path
from typing import Any, NoReturn

from adaptor.worker.processes import become_subreaper, child_pids, kill_descendants

SIGNALS = frozenset({signal.SIGCHLD, signal.SIGTERM})
"""What a supervisor waits for; they are to be blocked before it claims its job."""
MARKER = "ADAPTOR_LOCAL_JOB"
"""The variable by which the processes of a job are found again when its supervisor was killed."""

_DEFAULT_IN_WORKER = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)
_PR_SET_PDEATHSIG = 1


def run(job: dict[str, Any], started: float) -> dict[str, Any]:
    """Run the worker of a job note to its end or its time limit; returns the content of its end note."""
    deadline = time.monotonic() + job["tr"]
    become_subreaper()
    try:
        output = _redirect_output(job)
    except OSError as error:
        return _end("failed", None, f"its folder cannot be written: {error}")
    worker = _start_worker(job, started)
    status, cause = _attend(worker, deadline, job["grace"])
    _end_leftovers()
    code = os.waitstatus_to_exitcode(status)
    if cause:
        return _end(cause, code, f"its time limit of {job['tr']} s" if cause == "walltime" else "")
    if code == 0:
        return _end("completed", code, "")
    how = f"exit code {code}" if code > 0 else f"signal {-code}"
    return _end("failed", code, f"its worker ended with {how}; see {output}")


def _end(state: str, exit_code: int | None, reason: str) -> dict[str, Any]:
    return {"ended": time.time(), "state": state, "exit_code": exit_code, "reason": reason}


def _redirect_output(job: dict[str, Any]) -> Path:
    """Send what worker and supervisor print to the pilot's folder. Raises OSError."""
    path = Path(job["directory"], f"local-{job['id']}.out")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)
    return path


def _attend(worker: int, deadline: float, grace: float) -> tuple[int, str]:
    """Wait for the worker, ending it when its time is up or at SIGTERM: its wait status and the cause."""
    cause = ""
    while True:
        status = _reap().get(worker)
        if status is not None:
            return status, cause
        came = signal.sigtimedwait(SIGNALS, max(0.0, deadline - time.monotonic()))
        if came is not None and (came.si_signo == signal.SIGCHLD or cause):
            continue
        if not cause:
            cause = "walltime" if came is None else "cancelled"
            os.kill(worker, signal.SIGTERM)
        else:
            kill_descendants(signal.SIGKILL)
        deadline = time.monotonic() + grace


def _end_leftovers() -> None:
    """End what the worker left behind. Its orphans are our children by now, in whatever session."""
    _reap()
    if child_pids():
        kill_descendants(signal.SIGKILL)
        _reap()


def _reap() -> dict[int, int]:
    """The wait statuses of all children that have ended."""
    ended: dict[int, int] = {}
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return ended
            ended[pid] = status
    except ChildProcessError:
        return ended


def _environment(job: dict[str, Any], started: float) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ADAPTOR_")}
    return {
        **inherited,
        **job["environment"],
        "ADAPTOR_PILOT_END": repr(started + job["tr"]),
        "ADAPTOR_PROCESSORS": str(job["p"]),
        "ADAPTOR_MEMORY": str(job["memory"]),
        "ADAPTOR_NODE": os.uname().nodename,
        MARKER: job["marker"],
    }


def _start_worker(job: dict[str, Any], started: float) -> int:
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become_worker(job, _environment(job, started), supervisor)
    return pid


def _become_worker(job: dict[str, Any], environment: dict[str, str], supervisor: int) -> NoReturn:
    try:
        os.setsid()
        # A worker whose supervisor is killed is told to leave: nobody would end it at its time limit.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != supervisor:
            os._exit(1)
        for number in _DEFAULT_IN_WORKER:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(job["directory"])
        os.execvpe(job["worker"][0], job["worker"], environment)  # noqa: S606 (no shell is wanted)
    except OSError as error:
        os.write(2, f"{job['worker'][0]}: cannot be started: {error}\n".encode())
    finally:
        os._exit(127)
