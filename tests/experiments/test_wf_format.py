"""Instances of WfCommons: kinds, inputs, memory and the order of the runs; what is no instance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaptor_experiments.commands.replay import replay
from adaptor_experiments.task_records import TaskRecord
from adaptor_experiments.wf_format import read_instances
from adaptor_simulation.files import TraceError
from tests.simulation.invoking_replay import call


def instance(executed: str, *tasks: dict[str, Any]) -> str:
    """A run of a workflow; each task with `name`, `inputs` and what its execution says."""
    names = [f"{task['name']}_ID{number:06}" for number, task in enumerate(tasks)]
    planned = [
        {"id": name, "name": name, "parents": [], "children": [], "inputFiles": task.get("inputs", [])}
        for name, task in zip(names, tasks, strict=True)
    ]
    done = [
        {"id": name, **{key: each for key, each in task.items() if key not in ("name", "inputs")}}
        for name, task in zip(names, tasks, strict=True)
    ]
    sizes = {"a": 100, "b": 5, "empty": 0}
    files = [{"id": name, "sizeInBytes": size} for name, size in sizes.items()]
    execution = {"makespanInSeconds": 9, "executedAt": executed, "tasks": done}
    workflow = {"specification": {"tasks": planned, "files": files}, "execution": execution}
    return json.dumps({"name": "x", "schemaVersion": "1.5", "workflow": workflow})


def test_a_task_has_its_program_its_inputs_and_its_peak(tmp_path: Path) -> None:
    path = tmp_path / "blast.json"
    blast = {
        "name": "part",
        "inputs": ["a", "b", "a"],
        "runtimeInSeconds": 2.5,
        "memoryInBytes": 1000,
        "command": {"program": "blastall", "arguments": ["-p"]},
    }
    script = {
        "name": "FLOW.ALIGN",
        "inputs": ["elsewhere"],
        "runtimeInSeconds": 3,
        "command": {"program": "a b"},
    }
    others = [
        {"name": "none", "inputs": ["empty"], "runtimeInSeconds": 1},
        {"name": "short", "runtimeInSeconds": 0},
    ]
    path.write_text(instance("1970-01-01T00:01:00+00:00", blast, script, *others))
    records, left_out = read_instances(path)
    assert records == [
        TaskRecord("blastall", 60.0, 2.5, None, None, 1000, 105.0),
        TaskRecord("FLOW.ALIGN", 60.0, 3.0, None, None, None, None),
        TaskRecord("none", 60.0, 1.0, None, None, None, None),
    ]
    assert left_out == ["1 task left out: they took no time"]


def test_runs_of_a_folder_come_in_the_order_in_which_they_ran(tmp_path: Path) -> None:
    """By each of the three ways in which instances write a time."""
    for name, executed in (
        ("a", "03-23-21T06:04:36Z"),
        ("b", "20200401T235016+0000"),
        ("c", "2020-12-27T18:23:37-10:00"),
    ):
        (tmp_path / f"{name}.json").write_text(instance(executed, {"name": name, "runtimeInSeconds": 1}))
    (tmp_path / "README.md").write_text("no instance")
    assert [record.kind for record in read_instances(tmp_path)[0]] == ["b", "c", "a"]


@pytest.mark.parametrize(
    "content",
    ["{", '{"workflow": {"tasks": []}}', instance("yesterday", {"name": "a", "runtimeInSeconds": 1})],
)
def test_what_is_no_instance_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(TraceError, match=r"x\.json: no instance in WfFormat 1\.5: "):
        read_instances(path)


def test_a_folder_without_instances_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no instance of WfCommons"):
        read_instances(tmp_path)


def test_the_command_reads_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "flow"
    folder.mkdir()
    for run in range(2):
        tasks = [{"name": "part", "inputs": ["a"], "runtimeInSeconds": 60} for _ in range(6)]
        (folder / f"{run}.json").write_text(instance(f"2020-12-2{run}T00:00:00+00:00", *tasks))
    result = call(replay, "tasks", folder)
    assert result.exit_code == 0
    assert "flow      1      6" in result.output
