"""Every question and every command on a lived journal, and what they answered when this was recorded.

    python -m tests.api.golden

records anew, in `answers.json` beside this file: one answer a line. A change of it is a change of what users
and their programs see; say which in the commit.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from adaptor.bag_spec import BagSpec
from adaptor.cli.main import program
from adaptor.errors import AdaptorError
from adaptor.journal.database import FILE
from adaptor.journal.queries import answer_offline
from adaptor.protocol import control
from adaptor.protocol.control import BagInput, TaskInput
from adaptor.resources import OwnNeeds, TaskSize
from tests.api.lived import LIVED, NOW, Running, answered, connected, plain, rounded, still

RECORDED = Path(__file__).parent / "answers.json"
SPEC = BagSpec(name="new", cwd="/", output="/out-{bag}", environment={})

READING: list[control.Question] = [
    control.GetBags("all", record=True),
    control.GetBags("recent"),
    control.GetBags("1,3-4"),
    control.GetBags("99"),
    control.GetBags("nonsense"),
    control.GetLatestBags(),
    control.GetLatestBags(1, 1),
    *(control.GetTasks(bag) for bag in (1, 2, 3, 4)),
    control.GetTasks(2, ["running"]),
    control.GetTasks(4, after=0, limit=1),
    control.GetPilots(),
    control.GetPilots(ended=True),
    control.GetPilots(ended=True, since=1795531423.95),
    *(control.GetReport(bag) for bag in (1, 2, 3)),
    control.GetAdvice(1),
    control.GetWhy(),
    control.GetWhy(bag=2, limit=3),
    control.GetWhy(pilot=1, kinds=["issued"]),
    control.GetCredits(),
    control.GetCredits("2"),
    control.GetActivity([1, 2, 3, 4]),
    control.GetActivity([1, 2, 3, 4], most=1, bins=4),
    *(control.GetTaskSums(bag) for bag in (1, 2)),
    control.GetEvents({1: 0, 2: 0}),
    control.GetEvents({2: 1}, most=1),
    control.GetEvents({98: 0}),
]
"""What the journal answers alone."""

LIVE: list[control.Question] = [
    control.GetSites(),
    control.GetSlots(),
    control.GetSlots(["here"], TaskSize(processors=2)),
    control.GetSlots(["there"]),
    control.GetPicture(),
    control.GetPlan(SPEC, 20),
    control.GetDaemon(),
    control.Submit(BagInput(spec=SPEC, budget=50.0, tasks=[TaskInput("true")] * 2), open=True, key="k"),
    control.Submit(BagInput(spec=SPEC, tasks=[TaskInput("true")] * 2), open=True, key="k"),
    control.Submit(BagInput(spec=SPEC, tasks=[])),
    control.Submit(
        BagInput(spec=SPEC, tasks=[TaskInput("a"), TaskInput("b", needs=OwnNeeds(cpus=999), line=7)])
    ),
    control.Append(5, "first", [TaskInput("c")] * 3),
    control.Append(5, "first", [TaskInput("c")] * 3),
    control.GetEvents({5: 0}),
    control.Close([5, 4]),
    control.Pause([4, 5]),
    control.Resume([4]),
    control.ChangeOptions([4], priority=3, max_running=2),
    control.GetBags("4-6"),
    control.SetBudget(4, 12.5),
    control.Retry([2, 3]),
    control.Retry([3], needs=OwnNeeds(cpus=99)),
    control.Cancel([4], [1], unstarted=True),
    control.Cancel([3, 4, 5, 6]),
    control.Forget([1]),
    control.Forget([2]),
    control.SettleSite("away"),
    control.GetBags("all"),
    control.GetPicture(),
    control.Stop(),
    control.Reload(),
]
"""In this order, after those of `READING`."""

SHOWING = [
    *("status all", "status 2", "report 1", "report 2", "results all", "results 2 --failed", "why", "why 2"),
    *("pilot list", "pilot list --all", "credits", "credits 2", "budget 2", "wait 1", "watch 1"),
]
"""Commands that only read."""
TABLES = ["results 1 --csv", "results 2 --tsv", "metrics", "status 99", "results 1 --stdout --csv"]
CHANGING = [
    *("site list", "site slots", "site slots --cpus 2", "plan tasks.bag", "daemon status", "daemon start"),
    *("open --name more", "append 5 tasks.bag", "close 5", "submit tasks.bag --budget 20", "pause 4"),
    *("resume 4", "change 4 --priority 2", "budget 4 --set 20", "cancel 4 --task 0", "retry 3", "cancel 3-6"),
    *("forget 1 --yes", "daemon reload"),
]
"""Commands that ask the running daemon, in this order."""


def observed(folder: Path) -> Iterator[tuple[str, Any]]:
    """Each question and command with what it answers; `folder` is empty, and gets state directories."""
    patch = pytest.MonkeyPatch()
    with still(patch, folder / "offline"):
        offline = folder / "offline"
        offline.mkdir(mode=0o700)
        shutil.copy(LIVED, offline / FILE)
        for question in READING:
            yield f"offline {name_of(question)}", _offline(offline, question)
        for command in (*SHOWING, *TABLES):
            yield from _shown("offline", command, folder, command in SHOWING)
    running = Running(folder / "live")
    with still(patch, folder / "live"), closing(running.core.journal):
        for question in (*READING, *LIVE):
            yield f"live {name_of(question)}", answered(running, question)
    running = Running(folder / "commands")
    with still(patch, folder / "commands"), connected(patch, running), closing(running.core.journal):
        for command in (*SHOWING, *TABLES):
            yield from _shown("live", command, folder, command in SHOWING)
        for command in CHANGING:
            yield from _shown("live", command, folder, True)


def name_of(question: control.Question) -> str:
    """`GetTasks {"bag":1}`: a question with what it says beside its defaults."""
    said = msgspec.structs.asdict(question)
    nothing: list[Any] = [None, False, 0, "", []]
    told = {
        name: plain(value)
        for name, value in said.items()
        if value not in nothing and name not in ("spec", "tasks") and not isinstance(value, BagInput)
    }
    return f"{type(question).__name__} {_compact(told)}"


def _offline(directory: Path, question: control.Question) -> Any:
    try:
        return plain(answer_offline(directory, question, NOW))
    except AdaptorError as error:
        return {"failure": str(error)}


def _shown(where: str, command: str, folder: Path, with_json: bool) -> Iterator[tuple[str, Any]]:
    """A command's lines, and its value by `--json`."""
    (folder / "tasks.bag").write_text("echo one\necho two\n")
    for words in (command, f"{command} --json") if with_json else (command,):
        arguments = [str(folder / word) if word == "tasks.bag" else word for word in words.split()]
        done = CliRunner().invoke(program, arguments)
        told = {"code": done.exit_code, "err": done.stderr.replace(str(folder), "~").splitlines()}
        out = done.stdout.replace(str(folder), "~")
        is_json = words.endswith("--json") and out.startswith(("{", "["))
        told["out"] = rounded(json.loads(out)) if is_json else out.splitlines()
        yield f"{where} $ {words}", {key: value for key, value in told.items() if value or key == "out"}


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            f"{json.dumps(f'{number:03} {name}')}: {_compact(value)}"
            for number, (name, value) in enumerate(observed(Path(folder)))
        ]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
