"""A program's client: what it sends, and that an outage of the daemon neither loses nor doubles anything."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adaptor import api
from adaptor.api import BagEvents, TaskEvent, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.client import bags
from adaptor.client.bags import Client, ClientClosedError
from adaptor.errors import NoDaemonError, UsageError
from tests.cli.fake_control import DEADLINE, FakeControl
from tests.cli.invoking import Serve

SPEC = BagSpec(name="b", cwd="/", output="/out", environment={})
TRUE = TaskInput(["true"])


def appending() -> Callable[[api.Add], api.Added]:
    """Answers as a daemon does, one that counts each part once."""
    known: dict[tuple[str, int], api.Added] = {}

    def answer(question: api.Add) -> api.Added:
        first = sum(each.tasks for each in known.values())
        return known.setdefault((question.key, question.first), api.Added(first, len(question.tasks)))

    return answer


def events(last: int, *tasks: int, ended: bool = False) -> list[BagEvents]:
    told = BagEvents(
        bag=7,
        last=last,
        more=False,
        open=not ended,
        ended=ended,
        total=3,
        done=last,
        failed=0,
        cancelled=0,
        output="/out",
        tasks=[TaskEvent(task, last, "done", 1, 0, None, None, 1.0, 1.0, "n") for task in tasks],
    )
    return [told]


def test_a_bag_is_opened_filled_in_parts_and_closed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bags, "BATCH", 2)
    server = serve(
        {api.Publish: api.Submitted(7), api.Add: appending(), api.Close: [7], api.Cancel: 1},
    )
    with Client() as client:
        assert client.open_bag(SPEC, [TRUE] * 3) == 7
        assert client.append(7, [TRUE] * 5) == [3, 4, 5, 6, 7]
        assert client.append(7, []) == []
        assert client.append(7, [TRUE]) == [8]
        assert client.cancel(7, range(2)) == 1
        client.close_bag(7)
    (opened,) = server.submitted()
    assert (opened.open, opened.resume, opened.bag.tasks) == (True, False, [TRUE] * 3)
    parts = [(each.key, each.first, len(each.tasks)) for each in server.asked(api.Add)]
    appended, again = parts[2][0], parts[5][0]
    assert parts == [
        *[(opened.key, 0, 2), (opened.key, 2, 1)],
        *[(appended, 0, 2), (appended, 2, 2), (appended, 4, 1), (again, 0, 1)],
    ]
    assert len({opened.key, appended, again}) == 3
    assert server.asked(api.Cancel) == [api.Cancel([7], [0, 1])]


def test_tasks_that_name_each_other_are_added_at_once(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bags, "BATCH", 2)
    server = serve({api.Publish: api.Submitted(7)})
    linked = [*[TRUE] * 3, TaskInput("x", after=(0,))]
    with Client() as client:
        assert client.open_bag(SPEC, linked) == 7
    assert [each.tasks for each in server.asked(api.Add)] == [linked]


def test_what_this_key_has_published_is_not_submitted_again(serve: Serve) -> None:
    server = serve({api.Open: 5})
    with Client() as client:
        assert client.submit(api.BagInput(spec=SPEC, tasks=[TRUE]), key="mine") == api.Submitted(5)
    assert not server.asked(api.Add)


def test_an_append_that_got_no_answer_is_repeated_with_its_key(serve: Serve, state: Path) -> None:
    del state
    first = serve({api.Add: appending()})
    with Client() as client:
        assert client.append(7, [TRUE]) == [0]
        lost: list[Any] = []

        def die(question: api.Add) -> None:
            lost.append(question)
            first.leave()
            coming.start()

        after: list[FakeControl] = []
        coming = threading.Timer(0.2, lambda: after.append(serve({api.Add: appending()})))
        first.answers[api.Add] = die
        assert client.append(7, [TRUE, TRUE]) == [0, 1]
        coming.join()
        assert [each.key for each in after[0].asked(api.Add)] == [lost[0].key]


def test_a_daemon_that_was_never_there_is_an_error_at_once_or_is_started(serve: Serve) -> None:
    with pytest.raises(NoDaemonError), Client() as client:
        client.append(7, [TRUE])
    with Client(start=lambda: serve({api.Add: appending()})) as client:
        assert client.append(7, [TRUE]) == [0]


def test_a_daemon_that_stays_away_is_an_error_in_the_end(serve: Serve) -> None:
    server = serve({api.Add: appending()})
    with Client(patience=0.3) as client:
        client.append(7, [TRUE])
        server.close()
        with pytest.raises(NoDaemonError):
            client.append(7, [TRUE])


def test_a_daemon_that_leaves_during_the_first_question_is_waited_for(serve: Serve) -> None:
    first = serve({})
    coming = threading.Timer(0.3, lambda: serve({api.GetEvents: events(4, ended=True)}))

    def leave(_: api.GetEvents) -> None:
        first.leave()
        coming.start()

    first.answers[api.GetEvents] = leave
    with Client() as client:
        assert [each.last for each in client.follow(7)] == [4]
    coming.join()


def test_what_the_daemon_refuses_is_not_repeated(serve: Serve) -> None:
    server = serve({api.Add: api.Failure("bag 7 is closed", usage=True)})
    with Client() as client, pytest.raises(UsageError, match="bag 7 is closed"):
        client.append(7, [TRUE])
    assert len(server.asked(api.Add)) == 1


def test_a_bag_is_followed_by_its_events(serve: Serve) -> None:
    stages = iter([events(2, 0, 1), events(2), events(3, 2), events(4, ended=True)])
    server = serve({api.GetEvents: lambda _: next(stages)})
    with Client() as client:
        told = list(client.follow(7))
    assert [[task.task for task in each.tasks] for each in told] == [[0, 1], [], [2], []]
    assert [each.since for each in server.asked(api.GetEvents)] == [{7: 0}], "it is asked once"


def test_a_bag_is_followed_on_from_the_last_event_when_the_daemon_comes_back(
    serve: Serve, state: Path
) -> None:
    del state
    first = serve({})
    after: list[FakeControl] = []
    coming = threading.Timer(0.2, lambda: after.append(serve({api.GetEvents: events(4, 2, ended=True)})))

    def tell(question: api.GetEvents) -> list[BagEvents] | None:
        if not question.since[7]:
            return events(3, 0, 1)
        first.leave()
        coming.start()
        return None

    first.answers[api.GetEvents] = tell
    with Client() as client:
        assert [each.last for each in client.follow(7)] == [3, 4]
    coming.join()
    assert [each.since for each in after[0].asked(api.GetEvents)] == [{7: 3}]


def test_what_was_posted_is_asked_once_and_again_where_the_connection_broke(serve: Serve) -> None:
    question = api.Add(7, "key", 0, [TRUE])
    first = serve({api.GetSites: [], api.Add: api.Added(0, 1)})
    with Client() as client:
        post = client.poster()
        post(question)  # there is no connection yet
        client.ask(question)
        post(question)
        while len(first.asked(api.Add)) < 2:
            threading.Event().wait(0.01)
        client.ask(question)
        assert len(first.asked(api.Add)) == 2
        first.close()
        second = serve({api.Add: api.Added(0, 1)})
        post(question)
        client.ask(question)
        assert second.asked(api.Add) == [question]


def test_a_closed_client_ends_the_waiting_of_other_threads(serve: Serve) -> None:
    server = serve({api.GetEvents: events(0)})
    client = Client()
    ended = threading.Event()

    def follow() -> None:
        with pytest.raises(ClientClosedError):
            list(client.follow(7))
        ended.set()

    thread = threading.Thread(target=follow)
    thread.start()
    while not server.asked(api.GetEvents):
        threading.Event().wait(0.01)
    client.close()
    thread.join(DEADLINE)
    assert ended.is_set()
