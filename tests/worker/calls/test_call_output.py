"""What calls write is in files of their own, although those that write nothing share theirs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from adaptor.outputs.finding import Outputs, open_place
from adaptor.protocol.messages import Ending, Orders
from tests.examples import examples
from tests.worker.calls.bag_of_calls import Calls, bags
from tests.worker.fake_daemon import Harness, key


def print_it(n: int) -> None:
    print("out", n)


def complain(n: int) -> None:
    print("err", n, file=sys.stderr)


def write_below(n: int) -> None:
    os.write(1, b"out %d\n" % n)


def say_nothing(_n: int) -> None:
    """As most calls."""


def close_all(_n: int) -> None:
    os.close(1)
    os.close(2)


def seek(_n: int) -> None:
    os.lseek(1, 100, os.SEEK_SET)


def shorten(_n: int) -> None:
    os.write(1, b"gone")
    os.ftruncate(1, 0)


def do_not_wait(_n: int) -> None:
    os.set_blocking(1, False)


def append(_n: int) -> None:
    fcntl.fcntl(1, fcntl.F_SETFL, os.O_APPEND)


def nobody_writes(_n: int) -> None:
    os.fchmod(1, 0)


def replace(_n: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.write(1, b"nowhere")


OUT: dict[Callable[[int], None], str] = {print_it: "out", write_below: "out", complain: "err"}
CHANGES = [close_all, seek, shorten, do_not_wait, append, nobody_writes, replace]


def where() -> tuple[int, int, int, bool]:
    """The file that takes the output, its offset, its mode and whether it waits."""
    status = os.fstat(1)
    return status.st_ino, os.lseek(1, 0, os.SEEK_CUR), status.st_mode & 0o777, os.get_blocking(1)


def variables() -> dict[str, str]:
    return dict(os.environ)


def end(calls: Calls) -> None:
    """The bag ends, and what is left over goes."""
    calls.harness.daemon.send(Orders(ended_bags=[calls.bag]))
    calls.harness.daemon.until(lambda: not list(calls.output.glob(".*")))


def wait_for(path: Path) -> None:
    """In a call."""
    while not path.exists():
        time.sleep(0.01)


@examples(10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(acts=st.lists(st.sampled_from([*OUT, say_nothing, *CHANGES]), min_size=1, max_size=20))
def test_each_output_is_in_its_own_file_and_in_no_other(
    one_worker: Harness, acts: list[Callable[[int], None]]
) -> None:
    calls = Calls(one_worker, next(bags))
    calls.lease(*((act, n) for n, act in enumerate(acts)), first=0)
    for n in range(len(acts)):
        calls.value(n)
    end(calls)
    assert calls.texts() == {
        f"{n}.{OUT[act]}": f"{OUT[act]} {n}\n" for n, act in enumerate(acts) if act in OUT
    }


def test_calls_that_write_nothing_share_files_that_go_with_the_bag(calls: Calls) -> None:
    calls.lease(*[(where,)] * 20)
    # One that takes a second, as on a busy machine, gets files of its own.
    assert len({calls.value(n) for n in range(1, 21)}) < 10
    assert calls.texts() == {}
    end(calls)
    assert list(calls.output.iterdir()) == []


@pytest.mark.parametrize("change", CHANGES[1:-1])
def test_what_a_call_changes_on_its_output_is_as_ever_for_the_next(
    calls: Calls, change: Callable[[int], None]
) -> None:
    calls.lease((where,), (change, 0), (where,))
    before, after = calls.value(1), calls.value(3)
    assert before[1:] == after[1:]
    assert before[0] != after[0] or change is shorten


def test_nothing_is_left_when_the_worker_leaves(harness: Harness) -> None:
    worker = harness.started()
    calls = Calls(harness, 1)
    calls.lease(*((act, n) for n, act in enumerate([say_nothing, print_it, say_nothing])), first=0)
    for n in range(3):
        calls.value(n)
    worker.send_signal(signal.SIGTERM)
    harness.exit_code(worker)
    assert [path.name for path in calls.output.iterdir()] == ["1.out"]


def test_a_call_that_takes_longer_has_its_own_file_while_it_runs(calls: Calls) -> None:
    go, stop = (calls.harness.folder / f"{calls.bag}-{name}" for name in ("go", "stop"))

    def late() -> None:
        wait_for(go)
        print("late", flush=True)
        wait_for(stop)

    calls.lease((say_nothing, 1), (late,), (print_it, 3))
    until = calls.harness.daemon.until
    until(lambda: calls.texts() == {"2.out": "", "2.err": ""})
    go.touch()
    until(lambda: calls.texts()["2.out"] == "late\n")
    assert key(2, bag=calls.bag) not in calls.harness.daemon.results
    stop.touch()
    calls.value(3)
    end(calls)
    assert calls.texts() == {"2.out": "late\n", "3.out": "out 3\n"}


def test_a_call_that_took_longer_and_wrote_nothing_leaves_nothing(calls: Calls) -> None:
    stop = calls.harness.folder / f"{calls.bag}-stop"
    calls.lease((wait_for, stop), (say_nothing, 2))
    calls.harness.daemon.until(lambda: calls.texts() == {"1.out": "", "1.err": ""})
    stop.touch()
    calls.value(2)
    end(calls)
    calls.harness.daemon.until(lambda: calls.texts() == {})


@pytest.mark.parametrize("own_child", [True, False])
def test_what_a_child_writes_later_is_not_the_next_calls(calls: Calls, own_child: bool) -> None:
    go = calls.harness.folder / f"{calls.bag}-go"
    line = f"until test -e {go}; do sleep 0.01; done; echo child; touch {go}.written"

    def leave() -> None:
        if own_child:
            subprocess.Popen(["sh", "-c", line])
        else:
            subprocess.run(["sh", "-c", f"({line}) & "], check=True)

    def wait() -> None:
        go.touch()
        wait_for(Path(f"{go}.written"))

    calls.lease((say_nothing, 1), (leave,), (wait,), (print_it, 4))
    calls.value(4)
    end(calls)
    assert {name: text for name, text in calls.texts().items() if name != "2.out"} == {"4.out": "out 4\n"}


@pytest.mark.parametrize("ending", [Ending.TIMED_OUT, Ending.ABORTED, Ending.SIGNALLED])
def test_what_a_killed_call_has_written_stays(calls: Calls, ending: Ending) -> None:
    def write(kill: bool) -> None:
        print("written", flush=True)
        os.kill(0, signal.SIGKILL) if kill else time.sleep(1000)

    calls.lease((say_nothing, 1), (write, ending is Ending.SIGNALLED))
    daemon = calls.harness.daemon
    daemon.until(lambda: any(sizes(calls.output)))
    if ending is Ending.TIMED_OUT:
        daemon.send(Orders(timeouts={calls.bag: 0.001}))
    elif ending is Ending.ABORTED:
        daemon.send(Orders(abort=[key(2, bag=calls.bag)]))
    assert calls.result(2).ending is ending
    end(calls)
    assert calls.texts() == {"2.out": "written\n"}


def sizes(folder: Path) -> list[int]:
    """Of the files that are still there; none is removed in which there is something."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for path in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.append(path.stat().st_size)
    return found


def test_packed_outputs_of_calls(one_worker: Harness) -> None:
    calls = Calls(one_worker, next(bags), output_files="packed")
    calls.lease(*((print_it if n % 2 else say_nothing, n) for n in range(20)), first=0)
    for n in range(20):
        calls.value(n)
    end(calls)
    one_worker.daemon.until(lambda: len(list(calls.output.iterdir())) == 2)
    found = Outputs(str(calls.output))
    for n in range(20):
        place = found.find(n, 1, "stdout")
        assert (place is not None) == bool(n % 2)
        if place is not None:
            with open_place(place) as file:
                assert file.read(place.size or 0) == b"out %d\n" % n


def test_output_that_nobody_keeps(one_worker: Harness) -> None:
    calls = Calls(one_worker, next(bags), output_files="none")
    calls.lease(*((print_it, n) for n in range(5)), first=0)
    for n in range(5):
        calls.value(n)
    assert not calls.output.exists()


def test_an_output_of_an_earlier_state_directory_is_none_of_this_call(calls: Calls) -> None:
    calls.output.mkdir()
    for name in ("2.out", "3.out", "3.err"):
        (calls.output / name).write_text("old")
    calls.lease((say_nothing, 1), (say_nothing, 2), (print_it, 3))
    calls.value(3)
    end(calls)
    assert calls.texts() == {"3.out": "out 3\n"}


@pytest.mark.parametrize("act", [print_it, say_nothing])
def test_a_planted_link_leads_no_output_elsewhere(calls: Calls, act: Callable[[int], None]) -> None:
    precious = calls.harness.folder / f"{calls.bag}-precious"
    precious.write_text("precious")
    calls.output.mkdir()
    (calls.output / "2.out").symlink_to(precious)
    (calls.output / "3.out").hardlink_to(precious)
    calls.lease((say_nothing, 1), (act, 2), (act, 3))
    calls.value(3)
    end(calls)
    assert precious.read_text() == "precious"


def test_output_that_cannot_have_its_name_is_an_error(calls: Calls) -> None:
    (calls.output / "2.out").mkdir(parents=True)
    calls.lease((say_nothing, 1), (print_it, 2), (print_it, 3))
    result = calls.result(2)
    assert (result.exit_code, result.error) == (
        1,
        f"{calls.output}/2.out: the output is lost: Is a directory",
    )
    calls.value(3)


def test_a_folder_of_its_own(calls: Calls) -> None:
    there = calls.harness.folder / f"{calls.bag}-there"
    there.mkdir()
    calls.lease((os.getcwd,))
    assert calls.value(1) == str(calls.harness.cwd)
    calls.lease((os.getcwd,), (there.rmdir,), (there.mkdir,), first=2, cwd=str(there))
    assert calls.value(2) == str(there)
    assert calls.value(3) is None
    result = calls.result(4)
    assert result.ending is Ending.NOT_STARTED
    assert f"{there}: the task's folder cannot be entered" in (result.error or "")


def test_variables_of_one_call_are_not_those_of_the_next(calls: Calls) -> None:
    usual = calls.harness.bag().environment["PATH"]
    told = {"PATH": "/nowhere", "OF_ONE": "1"}
    for first, environment in ((1, told), (2, None), (3, told), (4, None)):
        calls.lease((variables,), first=first, environment=environment)
        found = calls.value(first)
        expected = environment or {"PATH": usual}
        assert {name: found.get(name) for name in told} == {name: expected.get(name) for name in told}
        assert found["ADAPTOR_TASK_ID"] == str(first)
