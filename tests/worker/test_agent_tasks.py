"""The real worker runs tasks: output, exit codes, signals, environment, and what cannot be executed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from adaptor.protocol.messages import Ending, Lease
from adaptor.resources import TaskSize
from tests.worker.fake_daemon import Harness, key, task


def test_hello_says_who_and_where(harness: Harness) -> None:
    worker = harness.started(ADAPTOR_MEMORY=123456789)
    hello = harness.daemon.hellos[0]
    assert (hello.pilot, hello.node, hello.pid) == (7, "n1", worker.pid)
    assert (hello.processors, hello.memory) == (2, 123456789)
    assert (hello.holding, hello.started, hello.unacknowledged) == ([], [], [])
    report = harness.daemon.reports[0]
    assert (report.free_processors, report.free_memory, report.queued) == (2, 123456789, 0)


def test_tasks_run_and_their_output_is_kept(harness: Harness) -> None:
    harness.started()
    harness.lease(*(task(n, f"echo out {n}; echo err {n} >&2") for n in range(20)))
    for n in range(20):
        result = harness.result(key(n))
        assert (result.ending, result.exit_code, result.signal) == (Ending.EXITED, 0, None)
        assert (harness.output / f"{n}.out").read_text() == f"out {n}\n"
        assert (harness.output / f"{n}.err").read_text() == f"err {n}\n"
    assert len(harness.daemon.received) == 20


def test_empty_output_files_are_removed(harness: Harness) -> None:
    harness.started()
    harness.lease(task(1, ["/bin/true"]), task(2, "echo x"))
    harness.result(key(1))
    harness.result(key(2))
    assert sorted(path.name for path in harness.output.iterdir()) == ["2.out"]


def test_files_that_change_hands_keep_outputs_apart(harness: Harness) -> None:
    harness.started()
    speaks = [n % 3 == 0 for n in range(60)]
    harness.lease(*(task(n, f"echo {n}" if speaks[n] else ["/bin/true"]) for n in range(60)))
    harness.daemon.until(lambda: len(harness.daemon.results) == 60)
    found = {path.name: path.read_text() for path in harness.output.iterdir()}
    assert found == {f"{n}.out": f"{n}\n" for n in range(60) if speaks[n]}


def test_what_is_left_behind_does_not_write_into_the_next_tasks_output(harness: Harness) -> None:
    harness.started(ADAPTOR_PROCESSORS=1)
    spammer = "(setsid sh -c 'while :; do echo spam; done' &) ; exec true"
    late = "(setsid sh -c 'sleep 0.05; echo spam' &) ; exec true"
    for n in range(0, 20, 2):
        harness.lease(task(n, late if n % 4 else spammer), task(n + 1, "sleep 0.1; echo mine"))
    harness.daemon.until(lambda: len(harness.daemon.results) == 20)
    assert {(harness.output / f"{n}.out").read_text() for n in range(1, 20, 2)} == {"mine\n"}


def test_later_attempts_write_files_of_their_own(harness: Harness) -> None:
    harness.started()
    harness.lease(Lease(key(1), "echo first", 0.0), Lease(key(1, attempt=2), "echo second", 0.0))
    harness.result(key(1))
    harness.result(key(1, attempt=2))
    assert (harness.output / "1.out").read_text() == "first\n"
    assert (harness.output / "1.2.out").read_text() == "second\n"


def test_wall_and_cpu_time_and_memory_are_reported(harness: Harness) -> None:
    harness.started()
    code = "import time; x = bytearray(200_000_000)\nwhile time.process_time() < 0.3: pass"
    harness.lease(task(1, ["python3", "-c", code]))
    result = harness.result(key(1))
    assert result.exit_code == 0
    assert result.cpu >= 0.3
    assert result.wall >= 0.3
    assert result.started > 0
    assert 200_000_000 <= result.peak_memory <= 400_000_000


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("exit 3", 3),
        (["/bin/false"], 1),
        ("/bin/false", 1),
        ("no-such-program", 127),
        ("/no/such/program", 127),
    ],
)
def test_exit_codes(harness: Harness, command: str | list[str], code: int) -> None:
    harness.started()
    harness.lease(task(1, command))
    result = harness.result(key(1))
    assert (result.ending, result.exit_code) == (Ending.EXITED, code)


@pytest.mark.parametrize(
    "number", [signal.SIGSEGV, signal.SIGPIPE, signal.SIGTERM], ids=lambda number: number.name
)
def test_a_task_that_a_signal_ends(harness: Harness, number: signal.Signals) -> None:
    """SIGPIPE ends it as usual, and SIGTERM that the task alone got is a failure."""
    harness.started()
    harness.lease(task(1, ["/bin/sh", "-c", f"kill -{number:d} $$; exit 5"]))
    result = harness.result(key(1))
    assert (result.ending, result.signal, result.exit_code) == (Ending.SIGNALLED, number, None)


def make_script(path: Path, text: str, mode: int) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_what_cannot_be_executed_says_why(harness: Harness) -> None:
    harness.started()
    data = make_script(harness.cwd / "data", "x", 0o644)
    headless = make_script(harness.cwd / "headless", "echo x", 0o755)
    lost = make_script(harness.cwd / "lost", "#!/no/such/interpreter\n", 0o755)
    cases = {
        1: (["no-such-program"], "no-such-program: no such program on the task's PATH", 127),
        2: ([str(data)], f"{data}: cannot be executed: not executable", 126),
        3: ([str(headless)], f"{headless}: cannot be executed: not a program", 126),
        4: ([str(lost)], f"{lost}: cannot be executed: no such file", 127),
        5: ([], "the task's command is empty", None),
        6: (["/bin/echo", "a\0b"], "/bin/echo: its arguments or its environment: ", None),
        7: (["/bin/true", "x" * 200_000], "/bin/true: cannot be executed: its arguments", 126),
        8: (["a\0b"], "not a program's name", None),
    }
    harness.lease(*(task(n, command) for n, (command, _, _) in cases.items()))
    for n, (_, words, code) in cases.items():
        result = harness.result(key(n))
        assert (result.ending, result.started, result.exit_code) == (Ending.NOT_STARTED, 0, code)
        assert words in (result.error or "")
    assert list(harness.output.iterdir()) == []


def test_a_folder_that_is_missing_says_so(harness: Harness) -> None:
    harness.started()
    blocked = harness.folder / "file"
    blocked.touch()
    bag = harness.bag(2, output=str(blocked / "out"))
    harness.lease(
        task(1, "true", cwd="/no/such/folder"),
        task(2, "true"),
        bags=[harness.bag(), bag],
    )
    assert harness.result(key(1)).error == (
        "/no/such/folder: the task's folder cannot be entered: No such file or directory"
    )
    assert harness.result(key(2)).exit_code == 0
    harness.lease(Lease(key(1, bag=2), "true", 0.0), bags=[])
    result = harness.result(key(1, bag=2))
    assert result.ending is Ending.NOT_STARTED
    assert "the output folder cannot be made: Not a directory" in (result.error or "")


def test_tasks_run_in_their_folder_with_their_environment(harness: Harness) -> None:
    before = harness.folder / "env.before"
    changes = {b"CHANGED": b"old", b"REMOVED": b"1", b"SAME": b"1"}
    before.write_bytes(b"\0".join(name + b"=" + value for name, value in {**os.environb, **changes}.items()))
    harness.started(
        ADAPTOR_ENV_BEFORE=before, CHANGED="new", ADDED="1", SAME="1", SLURM_STEP_ID="0", SLURM_JOB_ID="99"
    )
    other = harness.folder / "other"
    other.mkdir()
    bag = harness.bag(
        environment={"REMOVED": "1", "MINE": "bag", "PATH": "/usr/bin:/bin"}, task=TaskSize(processors=2)
    )
    harness.lease(
        task(1, "env; pwd", cwd=str(other), environment={"OWN": "1", "MINE": "task"}),
        task(2, ["/bin/pwd"]),
        bags=[bag],
    )
    harness.result(key(1))
    harness.result(key(2))
    lines = (harness.output / "1.out").read_text().splitlines()
    variables = dict(line.partition("=")[::2] for line in lines)
    assert {
        name: variables.get(name) for name in ("CHANGED", "ADDED", "MINE", "OWN", "PWD", "SLURM_JOB_ID")
    } == {
        "CHANGED": "new",
        "ADDED": "1",
        "MINE": "task",
        "OWN": "1",
        "PWD": str(other),
        "SLURM_JOB_ID": "201326593",
    }
    assert {n: v for n, v in variables.items() if n.startswith("ADAPTOR_")} == {
        "ADAPTOR_BAG_ID": "1",
        "ADAPTOR_TASK_ID": "1",
        "ADAPTOR_ATTEMPT": "1",
        "ADAPTOR_CPUS": "2",
        "ADAPTOR_DEADLINE": variables["ADAPTOR_DEADLINE"],
    }
    assert not {"REMOVED", "SLURM_STEP_ID"} & set(variables)
    assert lines[-1] == str(other)
    assert (harness.output / "2.out").read_text() == f"{harness.cwd}\n"


def test_100_megabytes_of_output(harness: Harness) -> None:
    harness.started()
    harness.lease(task(1, "head -c 100000000 /dev/zero"))
    assert harness.result(key(1)).exit_code == 0
    assert (harness.output / "1.out").stat().st_size == 100_000_000


def test_standard_input_is_empty(harness: Harness) -> None:
    harness.started()
    harness.lease(task(1, ["cat"]))
    assert harness.result(key(1)).exit_code == 0
