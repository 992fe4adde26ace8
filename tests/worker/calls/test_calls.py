"""The real worker runs calls of Python functions in processes that stay warm."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from functools import partial

import cloudpickle
import pytest

from adaptor.bag_spec import Interpreter
from adaptor.processes.identity import is_there, process_of
from adaptor.protocol.messages import (
    ERROR,
    ERROR_OF_CHILDREN,
    INPUT_FILE,
    TEXT,
    UNPREPARED,
    VALUE,
    Ending,
    Lease,
    Orders,
)
from adaptor.resources import TaskSize
from adaptor.worker.calls.warm_processes import IDLE
from tests.worker.calls.bag_of_calls import HERE, Calls, bags
from tests.worker.fake_daemon import Harness, key


def test_calls_answer_and_their_output_is_kept_apart(calls: Calls) -> None:
    def speak(n: int) -> int:
        if n % 2:
            print("says", n, flush=n % 4 == 1)
        return n * n

    calls.lease(*((speak, n) for n in range(12)), first=0)
    assert [calls.value(n) for n in range(12)] == [n * n for n in range(12)]
    assert calls.texts() == {f"{n}.out": f"says {n}\n" for n in range(1, 12, 2)}


def test_each_slot_keeps_its_process(harness: Harness) -> None:
    harness.started()
    calls = Calls(harness, 1)
    calls.lease(*[(os.getpid,)] * 20)
    assert len({calls.value(n) for n in range(1, 21)}) <= 2


def test_a_call_sees_the_variables_and_the_folder_of_its_task(calls: Calls) -> None:
    def seen() -> tuple[str, ...]:
        names = ("ADAPTOR_BAG_ID", "ADAPTOR_TASK_ID", "ADAPTOR_ATTEMPT")
        return (*(os.environ[name] for name in names), os.getcwd())

    calls.lease((seen,), (seen,))
    for number in (1, 2):
        assert calls.value(number) == (str(calls.bag), str(number), "1", str(calls.harness.cwd))


def test_an_exception_comes_back_with_its_traceback(calls: Calls) -> None:
    def fails() -> None:
        raise ValueError("seven")

    calls.lease((fails,))
    result = calls.result(1)
    assert (result.ending, result.exit_code, result.error) == (Ending.EXITED, 1, "ValueError: seven")
    assert result.answer[:1] == ERROR
    error = pickle.loads(result.answer[1:])
    assert isinstance(error, ValueError)
    assert error.__traceback__ is not None
    assert error.__traceback__.tb_frame.f_code.co_name == "fails"


def test_the_exception_of_a_call_whose_children_ended_may_come_from_a_signal(calls: Calls) -> None:
    calls.lease((partial(subprocess.run, ["false"], check=True),))
    assert calls.result(1).answer[:1] == ERROR_OF_CHILDREN


def test_an_exception_that_cannot_be_read_again_comes_as_text(calls: Calls) -> None:
    class Odd(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(f"{one} and {two}")
            self.lock = __import__("threading").Lock()

    def fails() -> None:
        raise Odd(1, 2)

    calls.lease((fails,))
    answer = calls.result(1).answer
    assert answer[:1] == TEXT
    name, line, trace = pickle.loads(answer[1:])
    assert (name, line) == ("Odd", "Odd: 1 and 2")
    assert "in fails" in trace


@pytest.mark.parametrize("size", [64 * 1024 - 100, 64 * 1024 + 100, 1_000_000])
def test_large_results_and_inputs_go_by_private_files(calls: Calls, size: int) -> None:
    calls.output.mkdir()
    (calls.output / "x.call").write_bytes(cloudpickle.dumps((len, (b"x" * size,), {})))
    calls.lease((bytes, size), INPUT_FILE + b"x.call")
    assert calls.value(2) == size
    answer = calls.result(1).answer
    if size < 64 * 1024:
        assert calls.value(1) == bytes(size)
    else:
        assert answer == VALUE.upper() + b"1.1.result"
        path = calls.output / "1.1.result"
        assert pickle.loads(path.read_bytes()) == bytes(size)
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_call_that_ends_its_process_fails_alone(calls: Calls) -> None:
    calls.lease((os._exit, 3), (os.getpid,), (partial(os.kill, 0, signal.SIGKILL),), (close_all,), (int,))
    result = calls.result(1)
    assert (result.ending, result.exit_code, result.answer) == (Ending.EXITED, 3, b"")
    assert calls.value(2)
    assert calls.result(3).signal == signal.SIGKILL
    assert calls.result(4).signal == signal.SIGKILL
    assert calls.value(5) == 0


def close_all() -> None:
    """The call can never answer."""
    os.closerange(3, 100)
    time.sleep(1000)


def test_an_aborted_call_ends_and_the_next_one_gets_a_new_process(calls: Calls) -> None:
    calls.lease((time.sleep, 1000))
    aborted = key(1, bag=calls.bag)
    calls.harness.running(aborted)
    calls.harness.daemon.send(Orders(abort=[aborted]))
    assert calls.result(1).ending is Ending.ABORTED
    calls.lease((int, "7"), first=2)
    assert calls.value(2) == 7


def test_another_python_is_refused_with_the_way_out(calls: Calls) -> None:
    calls.lease((int,), interpreter=Interpreter((sys.executable,), "2.7"))
    result = calls.result(1)
    assert result.ending is Ending.NOT_STARTED
    assert "is Python" in (result.error or "")
    assert "was 2.7" in (result.error or "")
    calls.lease((int,), interpreter=Interpreter(("/no/python",), "2.7"), first=2)
    assert "/no/python" in (calls.result(2).error or "")


def test_memory_and_processor_time_are_those_of_each_call(calls: Calls) -> None:
    def use() -> int:
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
        return len(b"x" * 300_000_000)

    calls.lease((use,), (int,))
    large, small = calls.result(1), calls.result(2)
    assert large.cpu >= 0.2 > small.cpu
    assert large.peak_memory > 300_000_000 > small.peak_memory > 1_000_000


def test_what_a_call_leaves_running_lives_as_long_as_its_process(harness: Harness) -> None:
    def leave() -> tuple[int, int]:
        return os.getpid(), subprocess.Popen(["sleep", "1000"]).pid

    harness.started()
    calls = Calls(harness, 1)
    calls.lease((leave,))
    process, child = map(process_of, calls.value(1))
    assert process is not None
    assert child is not None
    harness.lease(Lease(key(1, bag=2), "true", 0.0), bags=[harness.bag(2)])  # its end looks for orphans
    harness.result(key(1, bag=2))
    assert is_there(child)
    harness.daemon.send(Orders(ended_bags=[1]))
    harness.daemon.until(lambda: not is_there(process) and not is_there(child))


def test_commands_take_the_room_of_idle_processes(harness: Harness) -> None:
    """The command needs all memory of the worker, so that no process may wait beside it."""
    harness.started(ADAPTOR_PROCESSORS=1, ADAPTOR_MEMORY=1 << 30)
    calls = Calls(harness, 1)
    calls.lease((os.getpid,))
    process = process_of(calls.value(1))
    assert process is not None
    lease = Lease(key(1, bag=1000), "sleep 300", 0.0, task=TaskSize(memory=1 << 30))
    harness.lease(lease, bags=[harness.bag(1000)])
    harness.running(lease.key)
    harness.daemon.until(lambda: not is_there(process), IDLE / 2)


def test_two_bags_that_take_turns_at_a_slot_keep_a_process_each(calls: Calls) -> None:
    other = Calls(calls.harness, next(bags))
    seen = set()
    for number in range(1, 11):
        for each in (calls, other):
            each.lease((os.getpid,), first=number)
            seen.add(each.value(number))
    assert len(seen) == 2
    calls.harness.daemon.send(Orders(ended_bags=[other.bag]))


def test_where_the_memory_is_needed_a_slot_goes_on_with_one_bag(harness: Harness) -> None:
    """Each call needs all memory of the worker, so that no process may wait beside it."""
    harness.started(ADAPTOR_PROCESSORS=1, ADAPTOR_MEMORY=1 << 30)
    size = TaskSize(memory=1 << 30)
    one, two = (Calls(harness, bag, task=size) for bag in (1, 2))
    for each in (one, two):
        each.lease(*[(os.getpid,)] * 50)
    seen = [{each.value(n) for n in range(1, 51)} for each in (one, two)]
    assert [len(pids) for pids in seen] == [1, 1]


def test_calls_of_different_sizes_have_processes_of_their_own(harness: Harness) -> None:
    """What one has left in memory, and the threads that its variables name, are no matter of the other."""
    harness.started()
    calls, large = Calls(harness, 1), TaskSize(processors=2, memory=1 << 20)

    def seen() -> tuple[int, str]:
        return os.getpid(), os.environ["ADAPTOR_CPUS"]

    found = []
    for number in range(1, 7, 2):
        calls.lease((seen,), first=number)
        found.append(calls.value(number))
        calls.lease((seen,), first=number + 1, task=large)
        found.append(calls.value(number + 1))
    narrow, wide = ({pid for pid, cpus in found if cpus == size} for size in ("1", "2"))
    assert len(narrow) == len(wide) == 1
    assert narrow != wide


def initialized(function: object, *args: object) -> Interpreter:
    call = b"v" + cloudpickle.dumps((function, args, {}))
    return Interpreter(HERE.command, HERE.version, HERE.path, call)


def test_an_initializer_runs_once_in_each_process_before_its_calls(calls: Calls) -> None:
    def begin(word: str) -> None:
        print("begins", flush=True)
        os.environ["SEEN"] = os.environ.get("SEEN", "") + word

    calls.lease(*[(os.getenv, "SEEN")] * 3, interpreter=initialized(begin, "once"))
    assert [calls.value(n) for n in (1, 2, 3)] == ["once"] * 3
    assert calls.texts() == {"1.out": "begins\n"}


def test_no_call_runs_after_an_initializer_that_raises(calls: Calls) -> None:
    calls.lease((os.getpid,), (os.getpid,), interpreter=initialized(sys.exit, 3))
    for number in (1, 2):
        result = calls.result(number)
        assert (result.answer[:1], result.error) == (UNPREPARED, "SystemExit: 3")
