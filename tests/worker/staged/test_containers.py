"""The command that runs a task in a container; `tests/e2e/test_local_stage.py` runs one."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.guard_rails import EarlySignal
from adaptor.protocol.messages import AttemptKey, BagContext, Lease
from adaptor.worker.output import CannotStartError
from adaptor.worker.slots import HeldTask
from adaptor.worker.staged.containers import in_container


@pytest.fixture
def path(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "singularity"
    program.touch()
    program.chmod(0o755)
    return {"PATH": str(tmp_path / "bin")}


def held(command: str | list[str], gpus: tuple[int, ...] = (), **options: object) -> HeldTask:
    bag = BagContext(1, "/work", "/out", {}, image="image.sif", **options)  # type: ignore[arg-type]
    return HeldTask(Lease(AttemptKey(1, 0, 1), command, 0.0), bag, gpus)


def test_a_command_and_a_line(path: dict[str, str]) -> None:
    runtime = f"{path['PATH']}/singularity"
    begin = [runtime, "exec", "--pwd", "/work", "--bind", "/work", "--bind", "/stage"]
    assert in_container(held(["./fit", "a b"]), "/stage", path) == [
        *begin,
        "/stage/image.sif",
        "./fit",
        "a b",
    ]
    assert in_container(held("./fit | sort"), "/stage", path)[-4:] == [
        "/stage/image.sif",
        "/bin/sh",
        "-c",
        "./fit | sort",
    ]
    assert in_container(held("x", shell="bash -l"), "/stage", path)[-4:] == ["bash", "-l", "-c", "x"]
    assert "--nv" in in_container(held(["x"], (0,)), "/stage", path)
    early = in_container(held("x", signal=EarlySignal("SIGUSR1", 60.0)), "/stage", path)
    assert early[-1].endswith("x")
    assert early[-1] != "x", "the shell outlives the signal"


def test_apptainer_goes_first(path: dict[str, str]) -> None:
    program = Path(path["PATH"], "apptainer")
    program.touch()
    program.chmod(0o755)
    assert in_container(held(["x"]), "/stage", path)[0] == str(program)


def test_what_keeps_a_container_from_starting(path: dict[str, str]) -> None:
    with pytest.raises(CannotStartError, match="neither apptainer nor singularity is on the task's PATH"):
        in_container(held(["x"]), "/stage", {"PATH": "/nowhere"})
    with pytest.raises(CannotStartError, match="/a:b: a folder with ':' or ',' cannot be bound"):
        in_container(held(["x"]), "/a:b", path)
