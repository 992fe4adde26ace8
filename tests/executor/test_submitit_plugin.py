from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import submitit
from submitit.core.plugins import get_executors

from adaptor.executor.submitit_plugin import AdaptorExecutor, AdaptorJobEnvironment, parts, spec_of
from adaptor.guard_rails import EarlySignal
from adaptor.resources import TaskGpus


def test_submitit_finds_the_plugin_by_its_entry_point(tmp_path: Path) -> None:
    assert get_executors()["adaptor"] is AdaptorExecutor
    assert submitit.AutoExecutor(tmp_path, cluster="adaptor").cluster == "adaptor"


def test_parameters_become_those_of_the_bag() -> None:
    spec = spec_of({"timeout_min": 4, "cpus_per_task": 3, "mem_gb": 2, "gpus_per_node": 1, "site": "fast"})
    assert (spec.time, spec.cpus, spec.memory, spec.sites) == (240.0, 3, 2 * 2**30, ("fast",))
    assert spec.gpus == TaskGpus(1)


@pytest.mark.parametrize(("minutes", "delay"), [(30, 90.0), (1, 30.0)])
def test_jobs_that_checkpoint_get_the_signal_and_start_again(
    minutes: int, delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADAPTOR_BAG_ID", "7")
    monkeypatch.setenv("ADAPTOR_TASK_ID", "3")
    spec = spec_of({"timeout_min": minutes}, checkpoints=True)
    assert (spec.signal, spec.requeue_on) == (EarlySignal("SIGUSR2", delay), (75,))
    plain = spec_of({"timeout_min": minutes})
    assert (plain.signal, plain.requeue_on) == (None, ())
    with pytest.raises(SystemExit) as ended:
        AdaptorJobEnvironment()._requeue(3)
    assert ended.value.code == 75


def test_jobs_of_several_processes_are_refused(tmp_path: Path) -> None:
    executor = submitit.AutoExecutor(tmp_path, cluster="adaptor")
    with pytest.raises(ValueError, match="one process"):
        executor.update_parameters(tasks_per_node=2)


@pytest.mark.parametrize("folder", ["logs", "a b/%j"])
def test_the_shell_line_writes_where_submitit_looks(tmp_path: Path, folder: str) -> None:
    executor = AdaptorExecutor(tmp_path / folder)
    executor._python = "/bin/echo"
    variables = {**os.environ, "ADAPTOR_BAG_ID": "7", "ADAPTOR_TASK_ID": "3"}
    subprocess.run(["/bin/sh", "-c", executor._line()], env=variables, check=True)
    (out,) = tmp_path.rglob("7_3_0_log.out")
    assert "submitit.core._submit" in out.read_text()
    job = executor.job_class(folder=executor.folder, job_id="7_3", tasks=[0])
    assert job.paths.stdout == out


def test_a_job_knows_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADAPTOR_BAG_ID", "7")
    monkeypatch.setenv("ADAPTOR_TASK_ID", "3")
    environment = AdaptorJobEnvironment()
    assert (environment.job_id, environment.num_tasks, environment.global_rank) == ("7_3", 1, 0)
    assert parts(environment.job_id) == (7, 3)


def test_shell_lines_run_before_a_job_and_its_errors_may_go_with_its_output(tmp_path: Path) -> None:
    executor = submitit.AutoExecutor(tmp_path, cluster="adaptor")
    executor.update_parameters(adaptor_setup=["WORD=seen", "echo $WORD; ls /missing"], stderr_to_stdout=True)
    inner = executor._executor
    assert isinstance(inner, AdaptorExecutor)
    inner._python = "/bin/echo"
    variables = {**os.environ, "ADAPTOR_BAG_ID": "7", "ADAPTOR_TASK_ID": "3"}
    subprocess.run(["/bin/sh", "-c", inner._line()], env=variables, check=True)
    (out,) = tmp_path.rglob("7_3_0_log.*")
    first, second, third = out.read_text().splitlines()
    assert first == "seen"
    assert "/missing" in second
    assert "submitit.core._submit" in third
