"""Every question and every command on a lived journal, and what they answered when this was recorded.

    python -m tests.api.golden

records anew, in `answers.json` beside this file: one answer a line. A change of it is a change of what users
and their programs see; say which in the commit. It writes what messages look like, too: `PROTOCOL` into
`adaptor/api/question.py`, and those of workers into `tests/protocol/worker_shapes.json`. Workers of the last
version meet the daemon of the next one, so it refuses a change that one of both does not understand. With
`--end-workers` it does not: such workers leave, and what they run starts again.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.api import question as questions
from adaptor.bag_spec import BagSpec
from adaptor.cli.main import program
from adaptor.forecast.asked import AskedRequest
from adaptor.journal.queries import answer_offline
from adaptor.resources import OwnNeeds, TaskSize
from tests.api.lived import NOW, RECORDED_OUTPUTS, Running, answered, connected, copy_lived, rounded, still
from tests.shapes import api_types, digest, misfits, shapes, worker_types

RECORDED = Path(__file__).parent / "answers.json"
QUESTIONS = Path(questions.__file__)
WORKER_SHAPES = Path(__file__).parents[1] / "protocol" / "worker_shapes.json"
SPEC = BagSpec(name="new", cwd="/", output="/out-{bag}", environment={})

READING: list[api.Question[Any]] = [
    api.GetBags("all", record=True),
    api.GetBags("recent"),
    api.GetBags("1,3-4"),
    api.GetBags("99"),
    api.GetBags("nonsense"),
    api.GetLatestBags(),
    api.GetLatestBags(1, 1),
    *(api.GetTasks(bag) for bag in (1, 2, 3, 4)),
    api.GetTasks(2, ["running"]),
    api.GetTasks(4, after=0, limit=1),
    api.GetPilots(),
    api.GetPilots(ended=True),
    api.GetPilots(ended=True, since=1795531423.95),
    *(api.GetReport(bag) for bag in (1, 2, 3)),
    api.GetAdvice(1),
    api.GetWhy(),
    api.GetWhy(bag=2, limit=3),
    api.GetWhy(pilot=1, kinds=["issued"]),
    api.GetCredits(),
    api.GetCredits("2"),
    api.GetActivity([1, 2, 3, 4]),
    api.GetActivity([1, 2, 3, 4], most=1, bins=4),
    *(api.GetTaskSums(bag) for bag in (1, 2)),
    api.GetEvents({1: 0, 2: 0}),
    api.GetEvents({2: 1}, most=1),
    api.GetEvents({98: 0}),
    api.GetSeenStarts(),
]
"""Questions that the journal answers alone."""

LIVE: list[api.Question[Any]] = [
    api.GetSites(),
    api.GetSlots(),
    api.GetSlots(["here"], TaskSize(processors=2)),
    api.GetSlots(["there"]),
    api.GetStart(request=AskedRequest(tr=60.0, processors=2)),
    api.GetStart(request=AskedRequest(tr=60.0, processors=99)),
    api.GetStart(job="7", site="here"),
    api.GetStart(map=True),
    api.GetPicture(),
    api.GetPlan(SPEC, 20),
    api.GetDaemon(),
    api.GetUpkeep(),
    api.Open("k", SPEC, 50.0),
    api.Add(0, "k", 0, [TaskInput("true")] * 2),
    api.Publish("k", open=True),
    api.Publish("k", open=True),
    api.Open("k", SPEC),
    api.Open("two", SPEC),
    api.Add(0, "two", 0, [TaskInput("a"), TaskInput("b", needs=OwnNeeds(cpus=999), line=7)]),
    api.Add(0, "two", 2, [TaskInput("c")] * 2),
    api.Add(0, "two", 2, [TaskInput("c")] * 2),
    api.Add(0, "two", 5, [TaskInput("d")]),
    api.Publish("two", open=True),
    api.Add(5, "first", 0, [TaskInput("c")] * 3),
    api.Add(5, "first", 0, [TaskInput("c")] * 3),
    api.Open("three", SPEC),
    api.Publish("three"),
    api.Publish("three"),
    api.Open("four", SPEC),
    api.Add(0, "four", 0, [TaskInput("true")]),
    api.Publish("four"),
    api.GetEvents({5: 0}),
    api.Close([5, 4]),
    api.Pause([4, 5]),
    api.Resume([4]),
    api.ChangeOptions([4], api.OptionChanges(priority=3, max_running=2)),
    api.ChangeOptions([4], needs=OwnNeeds(cpus=2, memory=1 << 30)),
    api.GetBags("4-6"),
    api.ChangeOptions([4], api.OptionChanges(budget=12.5)),
    api.Retry([2, 3]),
    api.Retry([3], needs=OwnNeeds(cpus=99)),
    api.Cancel([4], [1], unstarted=True),
    api.Cancel([3, 4, 5, 6]),
    api.Forget([1]),
    api.Forget([2]),
    api.SettleSite("away"),
    api.GetBags("all"),
    api.GetPicture(),
    api.GetKeys(),
    api.RevokeKey("nobody"),
    api.Stop(),
    api.Reload(),
]
"""In this order, after those of `READING`."""

SHOWING = [
    *("status all", "status 2", "report 1", "report 2", "results all", "results 2 --failed", "why", "why 2"),
    *("status --pilots", "status --pilots --all", "credits", "credits 2", "watch 1 --quiet", "watch 1"),
]
"""Commands that only read."""
TABLES = ["results 1 --csv", "results 2 --csv", "status 99", "results 1 --stdout --csv"]
CHANGING = [
    *("status --sites", "site slots", "site slots --cpus 2", "plan tasks.bag"),
    *("when -p 2 -t 1h", "when --job 7"),
    *("status --daemon", "daemon start"),
    *("submit --open --name more", "append 5 tasks.bag", "append 5 --close"),
    *("submit tasks.bag --budget 20", "pause 4", "resume 4", "change 4 --priority 2"),
    *("change 4 --budget 20", "cancel 4 --task 0", "retry 3", "cancel 3-6"),
    *("forget 1 --yes", "daemon restart"),
]
"""Commands that ask the running daemon, in this order."""


def observed(folder: Path) -> Iterator[tuple[str, Any]]:
    """Each question and command with what it answers; `folder` is empty, and gets state directories."""
    for name, value in _observed(folder):
        said = _compact(value)
        for outputs in (str(folder / "outputs"), "~/outputs"):
            said = said.replace(outputs, RECORDED_OUTPUTS)
        yield name, json.loads(said)


def _observed(folder: Path) -> Iterator[tuple[str, Any]]:
    patch = pytest.MonkeyPatch()
    with still(patch, folder / "offline"):
        offline = folder / "offline"
        copy_lived(offline)
        for question in READING:
            yield f"offline {name_of(question)}", answered(partial(answer_offline, offline, question, NOW))
        for command in (*SHOWING, *TABLES):
            yield from _shown("offline", command, folder, command in SHOWING)
    running = Running(folder / "live")
    with still(patch, folder / "live"), closing(running.core.journal):
        for question in (*READING, *LIVE):
            yield f"live {name_of(question)}", answered(partial(running.ask, question))
    running = Running(folder / "commands")
    with still(patch, folder / "commands"), connected(patch, running), closing(running.core.journal):
        for command in (*SHOWING, *TABLES):
            yield from _shown("live", command, folder, command in SHOWING)
        for command in CHANGING:
            yield from _shown("live", command, folder, True)


def name_of(question: api.Question[Any]) -> str:
    """`GetTasks {"bag":1}`: a question with what it says beside its defaults."""
    said = msgspec.structs.asdict(question)
    nothing: list[Any] = [None, False, 0, "", []]
    told = {
        name: rounded(msgspec.to_builtins(value))
        for name, value in said.items()
        if value not in nothing and name not in ("spec", "tasks") and not isinstance(value, BagInput)
    }
    return f"{type(question).__name__} {_compact(told)}"


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


def protocol() -> str:
    """`PROTOCOL` as it should be: the number that is raised by hand, and the digest of the shapes."""
    number, _, _ = api.PROTOCOL.partition("-")
    return f"{number or 1}-{digest(api_types())}"


def _write_shapes() -> None:
    source = QUESTIONS.read_text(encoding="utf-8")
    written = re.sub('^PROTOCOL = ".*"$', f'PROTOCOL = "{protocol()}"', source, flags=re.MULTILINE)
    QUESTIONS.write_text(written, encoding="utf-8")
    now = shapes(worker_types())
    before = json.loads(WORKER_SHAPES.read_text(encoding="utf-8")) if WORKER_SHAPES.exists() else {}
    problems = misfits(before, now)
    if problems and "--end-workers" not in sys.argv:
        raise SystemExit("\n".join(problems))
    told = (f"{json.dumps(name)}: {_compact(shape)}" for name, shape in now.items())
    WORKER_SHAPES.write_text("{\n" + ",\n".join(told) + "\n}\n", encoding="utf-8")


def main() -> None:
    _write_shapes()
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            f"{json.dumps(f'{number:03} {name}')}: {_compact(value)}"
            for number, (name, value) in enumerate(observed(Path(folder)))
        ]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
