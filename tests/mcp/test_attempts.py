"""An agent that tries to exceed each of its limits: by its tools, by the raw protocol, and from its tasks.

docs/evidence.md has the list. The last test looks back at all of it: what the bags of the key have cost and
held at any time, by the entries of the ledger and by the pilots in the journal.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import msgspec
import pytest

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.bag_spec import BagSpec, Interpreter
from adaptor.client.asking import NoAnswerError
from adaptor.daemon.client.admission import MOST_BAGS
from adaptor.errors import AdaptorError, UsageError
from adaptor.protocol.access import key_access, worker_access
from adaptor.protocol.channel import Channel, ChannelError
from adaptor.resources import OwnNeeds
from tests.e2e.lab import Lab
from tests.living import until
from tests.mcp.agent import (
    Agent,
    ask,
    connected,
    holding,
    most_spent,
    processors_at_once,
    rows,
    submitted_raw,
)
from tests.mcp.conftest import BUDGET, CANARY, MAX_PROC, RACING, key_view
from tests.new_bag import NewBag

KEY = "agent"


def raw_bag(lab: Lab, *commands: str, budget: float | None = 4.0, **options: Any) -> BagInput:
    """By the raw protocol, where no tool checks anything."""
    given = {"name": "raw", "cwd": str(lab.work), "output": f"{lab.work}/out-{{bag}}", "environment": {}}
    spec = BagSpec(**{**given, **options})
    return BagInput(spec=spec, budget=budget, tasks=[TaskInput(line) for line in commands or ("true",)])


@pytest.fixture(scope="module")
def attempted() -> set[str]:
    """The tests that this process has begun."""
    return set()


@pytest.fixture(autouse=True)
def note(attempted: set[str], request: pytest.FixtureRequest) -> None:
    attempted.add(request.node.name)


def refused(lab: Lab, question: api.Question[Any] | NewBag, key: str = KEY) -> str:
    with pytest.raises(UsageError) as error:
        submitted_raw(lab, question, key) if isinstance(question, NewBag) else ask(lab, question, key)
    return str(error.value)


def submit(lab: Lab, bag: BagInput, **more: Any) -> int:
    return submitted_raw(lab, NewBag(bag, **more), KEY).bag


def own(lab: Lab) -> set[int]:
    return {view.id for view in ask(lab, api.GetBags("all"), KEY).bags}


def answered(connection: socket.socket, channel: Channel) -> bytes:
    """Raises ChannelError, OSError: the connection was closed."""
    connection.sendall(channel.outgoing())
    while data := connection.recv(65536):
        if messages := channel.receive(data):
            return messages[0]
    raise ConnectionError("closed")


# --- the budget ------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1e9, BUDGET + 0.01, -5.0, 0.0, float("nan"), float("inf")])
def test_01_a_larger_or_senseless_budget(lab: Lab, budget: float) -> None:
    assert "credits of key agent are neither used nor reserved" in refused(
        lab, NewBag(raw_bag(lab, budget=budget))
    )


def test_02_the_budget_of_a_bag_is_changed_later(lab: Lab, agent: Agent) -> None:
    bag = agent.call("submit", tasks=["sleep 600"], budget=4)["submitted"]["bag"]
    assert "may not ask ChangeOptions" in refused(
        lab, api.ChangeOptions([bag], api.OptionChanges(budget=1000.0))
    )
    assert agent.call("cancel", bag=bag) == {"cancelled": 1}


def test_03_bags_are_forgotten_to_have_their_credits_back(lab: Lab) -> None:
    bag = submit(lab, raw_bag(lab))
    lab.wait(bag)
    used = until(lambda: key_view(lab).used, "the pilot is settled")
    assert "may not ask Forget" in refused(lab, api.Forget([bag]))

    def forgotten() -> bool:  # by its user, and what it has cost counts on
        try:
            return ask(lab, api.Forget([bag])) == 1
        except AdaptorError:
            return False

    until(forgotten, "its pilot has ended")
    assert key_view(lab).used >= used


@pytest.fixture(scope="module")
def racer(lab: Lab) -> str:
    options = ("--budget", f"{RACING}", "--max-proc", f"{MAX_PROC}", "--canary", f"{CANARY}")
    lab.run("mcp", "grant", "racer", *options)
    return "racer"


@pytest.mark.parametrize(("time", "budget"), [(1800.0, 60.0), (1.0, 20.0)])
def test_04_many_bags_at_once_over_budget_or_processors(
    lab: Lab, racer: str, time: float, budget: float
) -> None:
    """Racing on eight connections: two long requests cost more than the budget, three short ones hold more
    processors than the cap. The last test has what they came to."""
    question = NewBag(raw_bag(lab, *["sleep 0.5"] * 6, budget=budget, time=time))

    def race(_: int) -> list[int]:
        found = []
        for _ in range(2):
            with suppress(UsageError):  # the first bags have reserved too much for another
                found.append(submitted_raw(lab, question).bag)
        return found

    with holding(racer), ThreadPoolExecutor(8) as pool:
        bags = [bag for some in pool.map(race, range(8)) for bag in some]
    assert len(set(bags)) == len(bags) >= 2
    until(lambda: any(view.done for view in ask(lab, api.GetBags("recent"), racer).bags[-16:]), "a result")
    view = key_view(lab, racer)
    assert view.used + view.reserved <= RACING
    assert view.held <= MAX_PROC
    assert ask(lab, api.Cancel(bags), racer) > 0
    until(lambda: not key_view(lab, racer).held, "its pilots end")


# --- processors and the canary -----------------------------------------------------------------------


def test_05_a_task_that_is_larger_than_the_cap(lab: Lab, agent: Agent) -> None:
    options = {"cpus": str(MAX_PROC + 1)}
    bag = agent.call("submit", tasks=["true"], options=options, budget=12)["submitted"]["bag"]
    told = until(
        lambda: [
            line for line in ask(lab, api.GetWhy(bag=bag, limit=500)).lines if f"bag {bag} waits" in line.text
        ],
        "a reason",
    )
    assert "of 2 processors: the smallest request has 3" in told[-1].text
    assert agent.call("watch", bag=bag, wait=1)["bag"]["running"] == 0
    agent.call("cancel", bag=bag)


@pytest.mark.parametrize("canary", ["no", 1])
def test_06_no_canary_or_a_smaller_one(lab: Lab, agent: Agent, canary: Any) -> None:
    assert "has canary=2 or more" in agent.refusal(
        "submit", tasks=["true"], options={"canary": str(canary)}, budget=4
    )
    assert "has canary=2 or more" in refused(lab, NewBag(raw_bag(lab, canary=canary)))


def test_07_a_bag_that_fails_is_resumed_or_retried(lab: Lab, agent: Agent) -> None:
    bag = agent.call("submit", tasks=["false"] * 50, budget=5)["submitted"]["bag"]
    state = agent.call("watch", bag=bag, wait=60)["bag"]
    while not state["paused"]:
        state = agent.call("watch", bag=bag, wait=60)["bag"]
    assert sum(task.attempts for task in ask(lab, api.GetTasks(bag))) <= CANARY
    assert f"one of its first {CANARY} tasks failed" in state["paused"]
    assert "may not ask Resume" in refused(lab, api.Resume([bag]))
    assert "may not ask Retry" in refused(lab, api.Retry([bag], needs=OwnNeeds(cpus=4)))
    assert "may not ask ChangeOptions" in refused(
        lab, api.ChangeOptions([bag], api.OptionChanges(max_running=0))
    )
    agent.call("cancel", bag=bag)


# --- the bags of others ------------------------------------------------------------------------------


def test_08_bags_of_the_user_are_read(lab: Lab, agent: Agent) -> None:
    for tool in ("watch", "why", "results", "report"):
        assert "no bag 1" in agent.refusal(tool, bag=1)
    refused(lab, api.GetBags("1"))
    assert 1 not in {view.id for view in ask(lab, api.GetBags("all"), KEY).bags}
    assert 1 not in {view.id for view in ask(lab, api.GetBags("1-1000"), KEY).bags}
    for question in (
        *(
            api.GetTaskSums(1),
            api.GetTasks(1),
            api.GetReport(1),
            api.GetEvents({1: 0}),
            api.GetWhy(),
            api.GetWhy(pilot=1),
        ),
        *(api.GetLatestBags(), api.GetAdvice(1), api.GetPilots(ended=True), api.GetCredits(), api.GetSites()),
    ):
        refused(lab, question)
    bag = max(own(lab))
    assert all("bag 1:" not in line.text for line in ask(lab, api.GetWhy(bag=bag, limit=1000), KEY).lines)


def test_09_a_bag_of_the_user_is_cancelled_changed_or_awaited(lab: Lab, agent: Agent) -> None:
    mine = lab.submit(lab.bag(["sleep 600"]))
    assert f"key agent has no bag {mine}" in agent.refusal("cancel", bag=mine)
    for question in (
        api.Pause([mine]),
        api.Close([mine]),
        api.ChangeOptions([mine], api.OptionChanges(priority=-9)),
    ):
        assert "may not ask" in refused(lab, question)
    assert "has no bag" in refused(lab, api.Cancel([max(own(lab)), mine]))
    assert "has no bag" in refused(lab, NewBag(raw_bag(lab, after=(mine,))))
    assert ask(lab, api.Cancel([mine])) == 1


def test_10_the_work_of_others_is_taken_over(lab: Lab) -> None:
    """By `--resume`, by the name that a client gave its submission, or by saying whose the bag is."""
    assert "continues no other" in refused(lab, NewBag(raw_bag(lab, name="mine"), resume=True))
    theirs = submitted_raw(lab, NewBag(raw_bag(lab), key="same")).bag
    bag = submit(lab, raw_bag(lab), key="same", owner="")
    assert bag != theirs
    assert bag in own(lab)
    assert theirs not in own(lab)
    assert submitted_raw(lab, NewBag(raw_bag(lab), owner=KEY)).bag not in own(lab), (
        "nobody else counts for it"
    )


# --- questions that are closed -------------------------------------------------------------------------


def test_11_its_own_limits_the_daemon_and_the_configuration(lab: Lab) -> None:
    more = api.Grant(budget=1e6, max_proc=10_000, canary=1)
    for question in (
        *(api.GrantKey(KEY, more), api.GrantKey("other", more), api.RevokeKey(KEY), api.Stop(pilots=True)),
        *(api.Reload(), api.SettleSite("here"), api.GetUpkeep(), api.GetPicture(), api.GetSlots()),
    ):
        assert f"key agent may not ask {type(question).__name__}" in refused(lab, question)
    assert [view.name for view in ask(lab, api.GetKeys(), KEY)] == [KEY]


def test_12_only_listed_questions_are_open() -> None:
    by_access: dict[str, set[str]] = {}
    for kind in api.Question.__subclasses__():
        if kind.__module__.startswith("adaptor."):
            by_access.setdefault(kind.for_keys.value, set()).add(kind.__name__)
    del by_access["closed"]
    assert by_access == {
        "public": {"GetDaemon", "GetPlan", "GetStart", "GetKeys"},
        "read": {"GetBags", "GetEvents", "GetTasks", "GetTaskSums", "GetWhy", "GetReport"},
        "change": {"Open", "Add", "Publish", "Cancel"},
    }


def test_13_tasks_that_come_later(lab: Lab, racer: str) -> None:
    """Tasks that come after the line in the journal would go round it."""
    assert "with all its tasks" in refused(lab, NewBag(raw_bag(lab), open=True))
    ended, theirs = max(own(lab)), lab.submit(lab.bag(["sleep 600"]), "--open")
    assert "is closed" in refused(lab, api.Add(ended, "k", 0, [TaskInput("true")]))
    assert f"has no bag {theirs}" in refused(lab, api.Add(theirs, "k", 0, [TaskInput("true")]))
    ask(lab, api.Open("k", raw_bag(lab).spec), racer)
    for name in ("k", f"{racer}:k"):
        assert "was not published" in refused(lab, api.Add(0, name, 0, [TaskInput("true")]))
    assert "was not published" in refused(lab, api.Publish(f"{racer}:k"))
    ask(lab, api.Open("calls", raw_bag(lab).spec, 1.0), KEY)
    assert "are commands" in refused(lab, api.Add(0, "calls", 0, [TaskInput("f()", call=b"v")]))
    assert "at most 100,000 tasks" in refused(lab, api.Add(0, "calls", 100_000, [TaskInput("true")]))
    assert ask(lab, api.Cancel([theirs])) == 1


def test_13_bags_that_are_never_published_count(lab: Lab, racer: str) -> None:
    spec = raw_bag(lab).spec
    for number in range(MOST_BAGS - 1):
        ask(lab, api.Open(f"{number}", spec, 0.01), racer)
    assert f"{MOST_BAGS} bags that have not ended" in refused(lab, api.Open("more", spec, 0.01), racer)


@pytest.mark.parametrize(
    "options",
    [
        {"notify": ("@/etc/passwd",)},
        {"priority": 999},
        {"kind": "theirs"},
        {"close_idle": 1e9},
        {"interpreter": Interpreter(("/bin/sh",), "3.12")},
    ],
)
def test_14_options_that_reach_beyond_the_bag(lab: Lab, options: dict[str, Any]) -> None:
    (field,) = options
    assert f"may not set {field}" in refused(lab, NewBag(raw_bag(lab, **options)))


# --- other keys ----------------------------------------------------------------------------------------


def test_15_a_read_only_key_submits(lab: Lab) -> None:
    lab.run("mcp", "grant", "reader", "--budget", "5", "--max-proc", "1", "--read-only", "--all-bags")
    assert "is read-only" in refused(lab, NewBag(raw_bag(lab)), "reader")
    assert "is read-only" in refused(lab, api.Cancel([1]), "reader")
    assert [view.name for view in ask(lab, api.GetBags("1"), "reader").bags] == ["mine"]


def test_16_a_key_after_its_end(lab: Lab) -> None:
    ends = ask(lab, api.GrantKey("brief", api.Grant(budget=1, max_proc=1, until=time.time() + 5)))
    assert ask(lab, api.GetKeys(), "brief")
    assert ends.endswith(key_access("brief"))

    def over() -> bool:
        try:
            ask(lab, api.GetKeys(), "brief")
        except UsageError as error:
            return "the grant of key brief ended" in str(error)
        return False

    until(over, "the end of the grant")
    assert "ended" in refused(lab, NewBag(raw_bag(lab)), "brief")


def test_17_a_revoked_key_and_one_of_the_same_name(lab: Lab) -> None:
    lab.run("mcp", "grant", "gone", "--budget", "4", "--max-proc", "1")
    copy = lab.root / "copy.json"
    copy.write_bytes((lab.state / key_access("gone")).read_bytes())
    copy.chmod(0o600)
    assert ask(lab, api.GetKeys(), str(copy))
    with connected(lab, "gone") as (connection, channel):
        lab.run("mcp", "revoke", "gone")
        channel.send(api.encode_question(api.GetKeys()))
        assert b"this key is revoked" in answered(connection, channel)
    with pytest.raises(AdaptorError):
        ask(lab, api.GetKeys(), str(copy))
    lab.run("mcp", "grant", "gone", "--budget", "4", "--max-proc", "1")
    with pytest.raises(AdaptorError):
        ask(lab, api.GetKeys(), str(copy))


def test_18_the_port_of_the_workers(lab: Lab) -> None:
    with connected(lab, KEY, worker_access("here")) as (connection, channel):
        channel.send(b"a worker")
        with pytest.raises((ChannelError, OSError)):  # in TLS 1.3 the server checks after the client is done
            answered(connection, channel)


# --- floods --------------------------------------------------------------------------------------------


def test_19_a_message_that_is_too_large(lab: Lab) -> None:
    with pytest.raises(NoAnswerError):
        submitted_raw(lab, NewBag(raw_bag(lab, "x" * (5 * 2**20))), KEY)
    assert ask(lab, api.GetKeys(), KEY)


def test_20_more_tasks_than_a_bag_may_have(lab: Lab, agent: Agent) -> None:
    told = agent.refusal("submit", template="true {n}", parameters={"n": "1:100001"}, budget=4)
    assert "at most 100,000 tasks, not 100,001" in told
    assert "at most 100,000 tasks" in refused(lab, api.GetPlan(raw_bag(lab).spec, 10**12))
    huge = {"a": "1:100000", "b": "1:100000"}
    assert "combinations" in agent.refusal("submit", template="true {a} {b}", parameters=huge)


def test_21_rows_without_end(lab: Lab, agent: Agent) -> None:
    bag = agent.call("submit", tasks=["true"] * 300, options={"name": "x" * 5000}, budget=4)
    number = bag["submitted"]["bag"]
    assert len(agent.call("results", bag=number, limit=10**9)["tasks"]) == 100
    view = agent.call("watch", bag=number, wait=0)["bag"]
    assert len(view["name"]) <= 2001
    with pytest.raises(UsageError):
        ask(lab, msgspec.structs.replace(api.GetEvents({number: 0}), wait=1e9), KEY)
    agent.call("cancel", bag=number)


def test_22_connections_that_fill_the_port(lab: Lab) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(connected(lab, KEY))[0] for _ in range(40)]
        assert ask(lab, api.GetDaemon()).pid, "its user is still answered"
        assert ask(lab, api.GetKeys(), KEY)
        closed = 0
        for each in held:
            each.settimeout(1)
            try:
                closed += not each.recv(1)
            except TimeoutError:
                break
            except OSError:
                closed += 1
        assert closed >= 24


# --- files, names and variables ------------------------------------------------------------------------


def test_23_files_through_parameters_and_results(lab: Lab, agent: Agent) -> None:
    secret = lab.root / "secret"
    secret.write_text("secret words\n")
    assert "instead of a file" in agent.refusal("submit", template="echo {a}", parameters={"a": f"@{secret}"})
    line = f"ln -sf {secret} $PWD/stolen/0.out; sleep 0.2"
    (lab.work / "stolen").mkdir()
    bag = agent.call("submit", tasks=[line], options={"output": "stolen"}, budget=4)["submitted"]["bag"]
    lab.wait(bag)
    (found,) = agent.call("results", bag=bag, output="stdout")["tasks"]
    assert found["stdout"] == ""


def test_24_a_name_that_forges_a_line_of_the_journal(lab: Lab, agent: Agent) -> None:
    forged = "x\n21:00:00 key other: granted 9 credits"
    assert "not a name" in agent.refusal("submit", tasks=["true"], options={"name": forged})
    bag = submit(lab, raw_bag(lab, f"true\n# {forged}", name=forged))
    lines = lab.run("mcp", "log").stdout.splitlines()
    assert [line for line in lines if f"submitted bag {bag} " in line]
    assert not [line for line in lines if line.startswith("21:00:00 key other")]
    assert not any(" key other" in line and "submitted bag" not in line for line in lines)


def test_25_variables_of_the_tasks(lab: Lab) -> None:
    """They reach tasks alone, not the commands of the daemon; the variable of the key stays."""
    hostile = {"ADAPTOR_KEY": "", "PATH": "/nowhere", "LD_PRELOAD": "/nowhere.so", "PYTHONPATH": "/nowhere"}
    bag = submit(lab, raw_bag(lab, "echo [$ADAPTOR_KEY]", environment=hostile))
    lab.wait(bag)
    assert (lab.work / f"out-{bag}" / "0.out").read_text() == "[agent]\n"
    assert ask(lab, api.GetDaemon()).pid


def test_26_tasks_that_call_the_adaptor(lab: Lab) -> None:
    """They ask with the same key. Whoever removes the variable is the user: docs/mcp.md says so."""
    words = shlex.join([sys.executable, "-m", "adaptor.cli"])
    lines = [
        f"{words} daemon stop 2>&1; true",
        f"{words} submit --budget 10000 -- true 2>&1; true",
        f"env -u ADAPTOR_KEY {words} status --daemon",
    ]
    environment = {"ADAPTOR_DIR": str(lab.state), "PATH": os.environ["PATH"]}
    bag = submit(lab, raw_bag(lab, *lines, "true", "true", environment=environment, canary=3, order="file"))
    lab.wait(bag)
    told = [(lab.work / f"out-{bag}" / f"{number}.out").read_text() for number in range(2)]
    assert "may not ask Stop" in told[0]
    assert "neither used nor reserved" in told[1]


# --- all of it -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bags(lab: Lab, racer: str) -> dict[str, set[int]]:
    """By key, once all have ended, their pilots are settled, and the daemon has left its journal."""
    ask(lab, api.Cancel(sorted(own(lab))), KEY)
    until(lambda: not any(key_view(lab, key).reserved for key in (KEY, racer)), "all pilots are settled")
    lab.run("daemon", "stop")
    found: dict[str, set[int]] = {}
    for bag, name in rows(lab, "SELECT bag, name FROM granted_bag"):
        found.setdefault(name, set()).add(bag)
    return found


def test_99_the_limits_held_at_all_times(
    lab: Lab, bags: dict[str, set[int]], attempted: set[str], request: pytest.FixtureRequest
) -> None:
    if {item.name for item in request.session.items if item.path == request.path} - attempted:
        pytest.skip("other processes of pytest made some of them: --dist loadfile keeps a file together")
    assert len(bags[KEY]) > 5
    assert len(bags["racer"]) > 5
    assert 0 < most_spent(lab, bags[KEY]) <= BUDGET
    assert RACING / 2 < most_spent(lab, bags["racer"]) <= RACING
    assert processors_at_once(lab, bags["racer"]) == MAX_PROC
    assert 0 < processors_at_once(lab, bags[KEY]) <= MAX_PROC
    kept = {bag for (bag,) in rows(lab, "SELECT id FROM bag")}
    told = "\n".join(text for (text,) in rows(lab, "SELECT text FROM decision WHERE kind = 'key'"))
    for key, own_bags in bags.items():
        assert all(f"key {key}: submitted bag {bag} (" in told for bag in own_bags & kept), (
            "each has its line"
        )
    assert told.count("key agent: refused: ") == 20, "and not more than a flood may fill"
