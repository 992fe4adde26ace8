"""submitit's `AutoExecutor(folder, cluster="adaptor")`, and so Hydra's launcher, on the sites.

Each call of `submit`, `map_array` or `batch` is one bag; a job is `BAG_TASK`. submitit finds both classes
by their entry points.
"""

from __future__ import annotations

import re
import shlex
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submitit.core import core, logger, utils
from submitit.core.job_environment import JobEnvironment

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.bag_spec import DEFAULT_OUTPUT, BagSpec
from adaptor.client.environment import current_umask
from adaptor.executor.session import client, ensure, inherited
from adaptor.guard_rails import EarlySignal, TimeLimit
from adaptor.option_kinds import BAG_NAME, MEMORY
from adaptor.resources import TaskGpus

_JOB = "@BAG@_@TASK@"  # stands for the id of a job in a path until the task knows it
_MARK = re.compile("@(BAG|TASK)@")
_FRESH = 0.5  # seconds
_NEWS = 10_000  # running tasks of a bag in one answer, at most
_CHECKPOINTED = 75  # EX_TEMPFAIL: a job has written its checkpoint and goes on elsewhere
_SIGNAL_DELAY = 90.0  # seconds from the signal to the end of a job, as submitit has it for Slurm
_STATES = {"done": "COMPLETED", "failed": "FAILED", "cancelled": "CANCELLED"}


class AdaptorWatcher(core.InfoWatcher):
    """Asks the daemon for the events of bags, each of which it tells once."""

    def __init__(self) -> None:
        super().__init__()
        self._heard: dict[int, int] = {}  # by bag: the last event that is known
        self._asked = float("-inf")

    def update_if_long_enough(self, mode: str) -> None:
        """Ask unless the last answer is fresh; `force`: even then; `cache`: not at all."""
        if mode == "force" or (mode == "standard" and time.monotonic() - self._asked >= _FRESH):
            self.update()

    def update(self) -> None:
        """Take in which jobs have ended."""
        self._num_calls += 1
        open_jobs = self._registered - self._finished
        since = {bag: self._heard.get(bag, 0) for bag in {parts(job)[0] for job in open_jobs}}
        with client() as asking:
            while since:
                found = asking.events(since, wait=0)
                for told in found:
                    self._heard[told.bag] = told.last
                    self._info_dict |= {
                        f"{told.bag}_{task.task}": {"jobState": _STATES.get(task.state, "PENDING")}
                        for task in told.tasks
                    }
                since = {told.bag: told.last for told in found if told.more}
            for bag in {parts(job)[0] for job in open_jobs}:
                for task in asking.ask(api.GetTasks(bag, ["running"], limit=_NEWS)):
                    if task.started is not None:  # else a worker holds it in reserve
                        self._info_dict.setdefault(f"{bag}_{task.task}", {"jobState": "RUNNING"})
        self._asked = time.monotonic()
        self._finished |= {job for job in open_jobs if self.is_done(job, mode="cache")}

    def get_state(self, job_id: str, mode: str = "standard") -> str:
        return str(self.get_info(job_id, mode=mode).get("jobState", "PENDING"))


class AdaptorJob(core.Job[Any]):
    watcher = AdaptorWatcher()

    def cancel(self, check: bool = True) -> None:  # noqa: ARG002 (there is no command to check)
        bag, task = parts(self.job_id)
        with client() as asking:
            asking.cancel(bag, [task])


class AdaptorExecutor(core.PicklingExecutor):
    """Parameters: those of all of submitit's executors, `site`, `setup` (shell lines before the job),
    `stderr_to_stdout`, and `signal_delay_s`: seconds from the signal to checkpoint to the end of the job."""

    job_class = AdaptorJob

    def __init__(self, folder: str | Path, max_num_timeout: int = 3, max_pickle_size_gb: float = 1.0) -> None:
        super().__init__(folder, max_num_timeout=max_num_timeout, max_pickle_size_gb=max_pickle_size_gb)
        self._throttling = 0.0  # no scheduler is asked
        self._python = sys.executable

    @classmethod
    def _valid_parameters(cls) -> set[str]:
        return {"site", "setup", "stderr_to_stdout", "signal_delay_s"}

    @classmethod
    def affinity(cls) -> int:
        """Affinity to this executor: 0, so it is used only if named."""
        return 0

    def _internal_update_parameters(self, **parameters: Any) -> None:
        """Set parameters of jobs. Raises ValueError: a parameter means several processes or nodes."""
        for name in ("nodes", "tasks_per_node"):
            if parameters.get(name, 1) != 1:
                raise ValueError(f"{name} = {parameters[name]}: a job of the adaptor is one process")
        super()._internal_update_parameters(**parameters)

    def _internal_process_submissions(self, delayed_submissions: list[Any]) -> list[Any]:
        """All of them in one bag."""
        checkpoints = any(hasattr(each.function, "checkpoint") for each in delayed_submissions)
        spec = spec_of(self.parameters, checkpoints=checkpoints)
        ensure(spec.sites)
        folder = utils.JobPaths.get_first_id_independent_folder(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        pickles = [folder / f"{uuid.uuid4().hex}.pkl" for _ in delayed_submissions]
        for delayed, path in zip(delayed_submissions, pickles, strict=True):
            delayed.set_timeout(self.parameters.get("timeout_min", 5), self.max_num_timeout)
            delayed.dump(path)
        task = TaskInput(self._line(), name=spec.name, environment={"SUBMITIT_EXECUTOR": self.name()})
        with client() as asking:
            bag = asking.submit(BagInput(spec=spec, tasks=[task] * len(pickles))).bag
        jobs = []
        for number, path in enumerate(pickles):
            job = self.job_class(folder=self.folder, job_id=f"{bag}_{number}", tasks=[0])
            job.paths.move_temporary_file(path, "submitted_pickle")  # the job waits for it
            jobs.append(job)
        return jobs

    def _line(self) -> str:
        """The shell line of each task: what it prints goes where submitit looks for it."""
        paths = utils.JobPaths(self.folder, job_id=_JOB, task_id=0)
        folder, out, err = (_quoted(path) for path in (paths.folder, paths.stdout, paths.stderr))
        words = f"{shlex.quote(self._python)} -u -m submitit.core._submit {shlex.quote(str(self.folder))}"
        to = f">> {out} 2>&1" if self.parameters.get("stderr_to_stdout") else f">> {out} 2>> {err}"
        begin = f"mkdir -p {folder} && exec {to} || exit"
        ready = f"trap '' {JobEnvironment.USR_SIG}"  # until Python handles it
        return "\n".join([begin, *self.parameters.get("setup", ()), ready, f"exec {words}"])

    def _num_tasks(self) -> int:
        return 1

    def _make_submission_file_text(self, command: str, uid: str) -> str:  # noqa: ARG002
        return ""

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:  # noqa: ARG002
        return []

    @staticmethod
    def _get_job_id_from_submission_command(string: bytes | str) -> str:  # noqa: ARG004
        return ""


class AdaptorJobEnvironment(JobEnvironment):
    """Facts that a job finds out about itself."""

    _env = {  # noqa: RUF012 (submitit's)
        "job_id": "ADAPTOR_TASK_ID",
        "array_job_id": "ADAPTOR_BAG_ID",
        "array_task_id": "ADAPTOR_TASK_ID",
        "num_nodes": "ADAPTOR_NODES",
        # One process: these are never set.
        **{name: f"ADAPTOR_SUBMITIT_{name}" for name in ("num_tasks", "node", "global_rank", "local_rank")},
    }

    def _requeue(self, countdown: int) -> None:
        """The job has written its checkpoint: it ends, and starts again from there."""
        logger.get_logger().info(f"Job {self.job_id} starts again ({countdown} remaining timeouts)")
        sys.exit(_CHECKPOINTED)


def parts(job_id: str) -> tuple[int, int]:
    """The bag and the task of a job's id."""
    bag, _, task = job_id.partition("_")
    return int(bag), int(task)


def spec_of(parameters: Mapping[str, Any], *, checkpoints: bool = False) -> BagSpec:
    """The bag of jobs with submitit's parameters. `checkpoints`: whether any of them can go on from one."""
    limit = 60.0 * parameters.get("timeout_min", 5)
    # A shorter limit leaves the other half of it for the work.
    delay = min(float(parameters.get("signal_delay_s", _SIGNAL_DELAY)), limit / 2)
    site = parameters.get("site", ())
    gpus, memory = parameters.get("gpus_per_node", 0), parameters.get("mem_gb")
    here = str(Path.cwd())
    return BagSpec(
        name=BAG_NAME.parse(str(parameters.get("name", "submitit")), 0.0),
        cpus=int(parameters.get("cpus_per_task", 1)),
        memory=None if memory is None else MEMORY.parse(f"{memory}G", 0.0),
        gpus=TaskGpus(gpus) if gpus else None,
        time=limit,
        timeout=TimeLimit(seconds=limit),
        signal=EarlySignal(f"SIG{JobEnvironment.USR_SIG}", delay) if checkpoints else None,
        requeue_on=(_CHECKPOINTED,) if checkpoints else (),
        canary="no",
        sites=(site,) if isinstance(site, str) else tuple(site),
        retries=0,
        replicas=0,
        cwd=here,
        output=f"{here}/{DEFAULT_OUTPUT}",
        environment=inherited(),
        umask=current_umask(),
    )


def _quoted(path: Path) -> str:
    """A path for the shell, in which the marks stand for what the task knows of itself."""
    pieces = _MARK.split(str(path))
    return "".join(
        f'"$ADAPTOR_{piece}_ID"' if place % 2 else shlex.quote(piece)
        for place, piece in enumerate(pieces)
        if piece
    )
