"""One message for each event of a bag, over crashes and restarts, and nothing secret where others see it."""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
import time
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiosmtpd.controller import Controller

from adaptor.config.schema import ChannelConfig, HooksConfig, NotifyConfig
from adaptor.daemon.notices import NotableEvents
from adaptor.daemon.upkeep.notifying import Notifier
from adaptor.errors import UsageError
from adaptor.journal.notice_rows import due_notices, mark_notice
from adaptor.journal.recovery import load_bag
from adaptor.protocol.messages import Ending, Report, Result
from adaptor.units import Duration
from tests.daemon.fake_site import FakeSite
from tests.daemon.lived_bags import begin, forget, hear, leased, live
from tests.daemon.upkeep.web import SECRET, Web
from tests.living import is_gone

DEADLINE = 60.0
"""Seconds for what must happen, on a busy machine too."""


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.close()


class Corner:
    """A site whose bags' events are sent."""

    def __init__(self, folder: Path, notify: NotifyConfig, hooks: HooksConfig) -> None:
        self.site = FakeSite(folder)
        self.notify, self.hooks = notify, hooks
        self.begin()

    def begin(self) -> None:
        core = self.site.state.core
        core.notable = NotableEvents(self.notify, hook=bool(self.hooks.on_bag_end))
        self.notifier = Notifier(core, self.notify, self.hooks)
        self.notifier._tell_interrupted()

    def restart(self) -> None:
        self.site.restart()
        self.begin()

    def send(self) -> None:
        self.notifier._note_pauses()
        asyncio.run(self.notifier._send_all())

    def states(self) -> list[tuple[object, ...]]:
        rows = self.site.journal.connection.execute(
            "SELECT bag, event, channel, state FROM notice ORDER BY at"
        )
        return rows.fetchall()


@pytest.fixture
def corner(tmp_path: Path, web: Web) -> Iterator[Corner]:
    channel = ChannelConfig(url=web.url)
    corner = Corner(tmp_path / "state", NotifyConfig({"me": channel}), HooksConfig())
    yield corner
    corner.site.journal.close()


def fail(site: FakeSite, worker: str) -> None:
    """All that a worker holds fails, for good."""
    for key in leased(site, worker):
        result = Result(key=key, ending=Ending.EXITED, started=time.time() - 1, wall=0.5, exit_code=3)
        free = Report(results=[result], free_processors=2, free_memory=1 << 30)
        hear(site, worker, Report(started=[key]), free)


def test_a_bag_tells_of_its_first_failure_and_of_its_end_once(corner: Corner, web: Web) -> None:
    bag = corner.site.submit_bag(2, notify=("me",), retries=0)
    worker = f"w{begin(corner.site)}"
    first, second = leased(corner.site, worker)
    for key in (first, second):
        result = Result(key=key, ending=Ending.EXITED, started=time.time() - 1, wall=0.5, exit_code=3)
        hear(corner.site, worker, Report(started=[key]), Report(results=[result]))
        corner.send()
    assert web.titles == [f"bag {bag} (b): a task failed", f"bag {bag} (b) has ended, with failed tasks"]
    assert "exit code 3" in web.got[0]["message"]
    assert "0 of 2 tasks done, 2 failed." in web.got[1]["message"]
    corner.send()
    corner.restart()
    corner.send()
    assert len(web.got) == 2
    assert not any(SECRET in argv for argv in web.argvs)
    assert not list(corner.site.directory.glob("message.*"))


def test_nobody_is_told_who_did_not_ask(corner: Corner, web: Web) -> None:
    live(corner.site)
    corner.send()
    assert corner.states() == []


def test_a_daemon_killed_before_it_sends_is_followed_by_one_that_does(corner: Corner, web: Web) -> None:
    bag = ended(corner)
    corner.restart()
    corner.send()
    assert web.titles == [f"bag {bag} (b) is done"]


def test_a_message_that_was_under_way_when_the_daemon_was_killed_is_not_sent_again(
    corner: Corner, web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    bag = ended(corner)
    with corner.site.journal.transaction() as db:
        (notice,) = due_notices(db)
        mark_notice(db, notice, "sending")
    left = corner.site.directory / "message.1.json"
    left.write_text("{}")
    corner.restart()
    corner.send()
    assert web.got == []
    assert not left.exists()
    assert corner.states() == [(bag, "end", "me", "unknown")]
    assert "it is not sent again" in caplog.text


def ended(corner: Corner) -> int:
    bag = corner.site.submit_bag(1, notify=("me",))
    worker = f"w{begin(corner.site)}"
    (key,) = leased(corner.site, worker)
    result = Result(key=key, ending=Ending.EXITED, started=time.time() - 1, wall=0.5, exit_code=0)
    hear(corner.site, worker, Report(started=[key]), Report(results=[result]))
    return bag


def test_a_server_that_refuses_is_tried_again_and_one_that_stays_away_is_told_of(
    corner: Corner, web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    web.refuse = 1
    bag = ended(corner)
    corner.send()
    assert corner.states() == [(bag, "end", "me", "sent")]
    assert len(web.got) == 1
    web.refuse = 10**6
    bag = ended(corner)
    corner.send()
    assert corner.states()[-1] == (bag, "end", "me", "failed")
    told = corner.site.told("problem")
    assert any(
        "notification of its end to me: it ended with status 1: not sent: URL 1 (json://…)" in text
        for text in told
    )
    assert SECRET not in caplog.text + "".join(told)


def test_a_bag_that_is_tried_again_tells_of_its_new_end(corner: Corner, web: Web) -> None:
    bag = corner.site.submit_bag(1, notify=("me",), retries=0)
    worker = f"w{begin(corner.site)}"
    fail(corner.site, worker)
    corner.send()
    core = corner.site.state.core
    core.broker.retry(load_bag(core.journal, bag), core.now())
    asyncio.run(core.commit())
    fail(corner.site, worker)
    corner.send()
    assert [title for title in web.titles if "ended" in title] == [
        f"bag {bag} (b) has ended, with failed tasks"
    ] * 2


def test_a_bag_that_pauses_by_itself_says_so_and_one_that_its_user_pauses_does_not(
    corner: Corner, web: Web
) -> None:
    bag = corner.site.submit_bag(30, notify=("me",))
    worker = f"w{begin(corner.site)}"
    corner.site.state.core.broker.pause(bag)
    corner.send()
    assert web.titles == []
    corner.site.state.core.broker.resume(bag, time.time())
    guarded = corner.site.state.core.broker.state.bags[bag]
    guarded.guard = type(guarded.guard)()  # as if it had never been paused: its canary watches it
    while leased(corner.site, worker):
        fail(corner.site, worker)
    corner.send()
    assert web.titles == [f"bag {bag} (b): a task failed", f"bag {bag} (b) is paused"]
    assert "attempts all failed alike" in web.got[1]["message"]


def test_a_pause_is_told_once(corner: Corner, web: Web) -> None:
    bag = corner.site.submit_bag(2, notify=("me",))
    core = corner.site.state.core
    core.decided = type(core.decided)(paused={"here": {bag: "bag 1 has 0.1 credits left: no request fits"}})
    for _ in range(2):
        corner.send()
        corner.restart()
        core = corner.site.state.core
        core.decided = type(core.decided)(paused={"here": {bag: "another text"}})
    assert web.titles == [f"bag {bag} (b) is paused"]
    assert "0.1 credits left" in web.got[0]["message"]


def test_a_forgotten_bag_leaves_no_message(corner: Corner, web: Web) -> None:
    bag = live(corner.site)
    with corner.site.journal.transaction() as db:
        db.execute("INSERT INTO notice VALUES (?, 'end', 'me', '', 0, 'sent')", (bag,))
    forget(corner.site, bag)
    assert corner.states() == []


def test_a_mail_is_received_by_an_smtp_server(tmp_path: Path) -> None:
    got: list[Message] = []

    class Handler:
        async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:
            got.append(message_from_bytes(envelope.content))
            return "250 OK"

    class OwnPort(Controller):  # type: ignore[misc]
        """Keeps the port that it was given from the start, so that nobody else gets it."""

        def _create_server(self) -> Any:
            return self.loop.create_server(self._factory_invoker, sock=listener)

    listener = socket.create_server(("127.0.0.1", 0))
    controller = OwnPort(
        Handler(), hostname="127.0.0.1", port=listener.getsockname()[1], ready_timeout=DEADLINE
    )
    controller.start()
    try:
        urls = tmp_path / "urls"
        urls.write_text(
            f"# mine\nmailto://127.0.0.1:{controller.port}?from=a@here.org&to=me@there.org&mode=insecure\n"
        )
        urls.chmod(0o600)
        corner = Corner(
            tmp_path / "state", NotifyConfig({"me": ChannelConfig(file=str(urls))}), HooksConfig()
        )
        bag = ended(corner)
        corner.send()
        assert corner.states() == [(bag, "end", "me", "sent")]
        corner.site.journal.close()
    finally:
        controller.stop()
    (mail,) = got
    assert mail["Subject"] == f"bag {bag} (b) is done"
    assert mail["To"] == "me@there.org"


def test_where_no_channel_is_configured_me_is_mail_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adaptor.notify.channels._PLACES", str(tmp_path))
    corner = Corner(tmp_path / "state", NotifyConfig(), HooksConfig())
    with pytest.raises(UsageError, match="sendmail, which this machine lacks; write a channel"):
        corner.notifier.check(("me",))
    got = tmp_path / "got"
    program = tmp_path / "sendmail"
    program.write_text(f'#!/bin/sh\necho "$@" > {got}.arguments\ncat > {got}\n', encoding="utf-8")
    program.chmod(0o700)
    corner.notifier.check(("me",))
    bag = ended(corner)
    corner.send()
    assert corner.states() == [(bag, "end", "me", "sent")]
    user = pwd.getpwuid(os.getuid()).pw_name
    assert Path(f"{got}.arguments").read_text().split() == ["-i", user]
    mail = message_from_bytes(got.read_bytes())
    assert (mail["To"], mail["Subject"]) == (user, f"bag {bag} (b) is done")
    assert "1 of 1 task done" in mail.get_payload()
    corner.site.journal.close()


def test_a_file_of_urls_must_be_private(corner: Corner, tmp_path: Path, web: Web) -> None:
    urls = tmp_path / "urls"
    urls.write_text(f"{web.url}\n")
    urls.chmod(0o640)
    with pytest.raises(UsageError, match=f"chmod 600 {urls}"):
        corner.notifier.check((f"@{urls}",))
    with pytest.raises(UsageError, match="there is no channel 'you' for --notify; the configuration has: me"):
        corner.notifier.check(("you",))
    urls.chmod(0o600)
    corner.notifier.check((f"@{urls}", "me"))


def hooked(folder: Path, script: str, timeout: float = 900) -> Corner:
    program = folder / "hook"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    hooks = HooksConfig(on_bag_end=(str(program), "an argument"), timeout=Duration(timeout))
    return Corner(folder / "state", NotifyConfig(), hooks)


def test_the_hook_gets_the_facts_in_its_environment_and_runs_once(tmp_path: Path) -> None:
    corner = hooked(
        tmp_path, f'echo "$1" $ADAPTOR_BAG $ADAPTOR_BAG_STATE $ADAPTOR_BAG_DONE >> {tmp_path}/ran'
    )
    bag = live(corner.site, 3)
    for _ in range(2):
        corner.send()
        corner.restart()
    assert (tmp_path / "ran").read_text() == f"an argument {bag} done 3\n"
    corner.site.journal.close()


def test_a_hook_that_hangs_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time begins when it hangs, however long the machine took to start it."""
    corner = hooked(tmp_path, f"sleep 1000 & echo $! > {tmp_path}/pid; wait", timeout=1)
    bag = live(corner.site)
    start = asyncio.create_subprocess_exec

    async def started(*words: Any, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*words, **options)
        await written(tmp_path / "pid")
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", started)
    corner.send()
    assert corner.states() == [(bag, "end", "", "failed")]
    assert any("on_bag_end: it took longer than 1s" in text for text in corner.site.told("problem"))
    pid = int((tmp_path / "pid").read_text())
    assert is_gone(pid)
    corner.site.journal.close()


async def written(path: Path) -> None:
    """Waits until a file holds a whole line."""
    give_up = time.monotonic() + DEADLINE
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < give_up, f"nothing was written to {path}"
        await asyncio.sleep(0.02)


def test_a_hook_that_fails_is_told_of(tmp_path: Path) -> None:
    corner = hooked(tmp_path, "echo no such project >&2; exit 7")
    live(corner.site)
    corner.send()
    assert any("it ended with status 7: no such project" in text for text in corner.site.told("problem"))
    corner.site.journal.close()
    assert os.environ.get("ADAPTOR_BAG") is None


def test_a_daemon_that_stops_meanwhile_is_not_held_up_and_lets_the_hook_go_on(tmp_path: Path) -> None:
    corner = hooked(tmp_path, f"echo $$ > {tmp_path}/pid; sleep 1000")
    bag = live(corner.site)

    async def stop_while_it_runs() -> None:
        sending = asyncio.create_task(corner.notifier._send_all())
        await written(tmp_path / "pid")
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    asyncio.run(stop_while_it_runs())
    hook = psutil.Process(int((tmp_path / "pid").read_text()))
    assert hook.is_running()
    os.killpg(hook.pid, 9)
    corner.restart()
    corner.send()
    assert corner.states() == [(bag, "end", "", "unknown")], "it ran once"
    corner.site.journal.close()
