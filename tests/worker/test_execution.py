"""How an attempt starts: which lines need no shell, where a program is found, and what can go wrong."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.guard_rails import EarlySignal
from adaptor.protocol.messages import BagContext, Lease
from adaptor.worker.execution import Child, execute, plain_words, program_of
from adaptor.worker.output import CannotStartError, OutputFolder, ShortageError
from adaptor.worker.slots import HeldTask
from tests.worker.attempts import KEY, failing


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/bin/true", ["/bin/true"]),
        ("./run.sh 17 --out=a/b.txt", ["./run.sh", "17", "--out=a/b.txt"]),
        ("bin/x  a   b", ["bin/x", "a", "b"]),
    ],
)
def test_lines_without_anything_for_the_shell(line: str, words: list[str]) -> None:
    assert plain_words(line) == words


@pytest.mark.parametrize(
    "line",
    [
        "", "true", "cd /tmp", "/bin/echo $HOME", "/bin/echo 'a b'", "/bin/a; /bin/b", "/bin/a && b",
        "/bin/a > x", "A=/b/c d", "PATH=/x/y", "~/bin/x", "/bin/echo ~", "/bin/echo *", "/bin/a &",
        "/bin/a | b", "/bin/a #x", "/bin/a \\", "/bin/a\nb", " /bin/a", "/bin/a ", "/bin/{a,b}",
        "/bin/a `b`", "/bin/a !b", "/bin/a\tb",
    ],
)  # fmt: skip
def test_lines_for_the_shell(line: str) -> None:
    assert plain_words(line) is None


@given(st.text(alphabet=" aB9_./+:,@%=-~$'\\", max_size=12))
def test_the_shell_splits_plain_lines_in_the_same_way(rest: str) -> None:
    line = f"/a {rest}"
    words = plain_words(line)
    if words is not None:
        script = f'show() {{ for word; do echo "$word"; done; }}; show {line}'
        shown = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
        assert shown.stdout.splitlines() == words


def executable(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_program_is_sought_on_the_path_of_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = executable(tmp_path / "a" / "prog-of-test"), executable(tmp_path / "b" / "prog-of-test")
    path = f"/no/such:{first.parent}:{second.parent}"
    assert program_of("prog-of-test", {"PATH": path}) == str(first)
    first.chmod(0o644)
    assert program_of("prog-of-test", {"PATH": path}) == str(second)
    second.unlink()
    with pytest.raises(FileNotFoundError):
        program_of("prog-of-test", {"PATH": path})


def test_relative_entries_of_the_path_are_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        executable(tmp_path / name / "bin-of-test")
        monkeypatch.chdir(tmp_path / name)
        assert Path(program_of("bin-of-test", {"PATH": ":/bin"})).samefile(tmp_path / name / "bin-of-test")
    monkeypatch.chdir(tmp_path)
    assert program_of("bin-of-test", {"PATH": "two"}) == "two/bin-of-test"


def test_a_folder_is_no_program_and_a_path_is_taken_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "dir-of-test").mkdir()
    with pytest.raises(FileNotFoundError):
        program_of("dir-of-test", {"PATH": str(tmp_path)})
    with pytest.raises(FileNotFoundError):
        program_of("", {"PATH": "/bin"})
    assert program_of("./x", {}) == "./x"
    assert program_of("sh", {}).endswith("/bin/sh")


def start(bag: BagContext, command: str | list[str], environment: dict[str, str]) -> Child:
    held = HeldTask(Lease(KEY, command, 0.0), bag)
    files = OutputFolder(bag).open(held)
    try:
        return execute(held, environment, files)
    finally:
        files.close()


def test_a_library_without_setsid_serves_too(bag: BagContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_spawn", failing(NotImplementedError()))  # type: ignore[arg-type]
    child = start(bag, "echo $0; pwd; echo $X >&2", {"X": "1", "PATH": "/bin"})
    assert os.getsid(child.pid) == child.pid
    assert os.waitpid(child.pid, 0)[1] == 0
    child.reaped()
    assert Path(bag.output, "1.out").read_text() == f"/bin/bash\n{bag.cwd}\n"
    assert Path(bag.output, "1.err").read_text() == "1\n"


@pytest.mark.parametrize("asked", [False, True])
def test_a_task_does_not_ignore_the_signal_that_its_bag_asks_for(bag: BagContext, asked: bool) -> None:
    """Pilots of Grid Engine ignore it, and a shell cannot trap what was ignored when it started."""
    if asked:
        bag = msgspec.structs.replace(bag, signal=EarlySignal("SIGUSR1", 60.0))
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        child = start(bag, ["/bin/sh", "-c", "trap 'echo trapped' USR1; kill -USR1 $$; echo end"], {})
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert os.waitpid(child.pid, 0)[1] == 0
    assert Path(bag.output, "1.out").read_text() == ("trapped\nend\n" if asked else "end\n")


def test_a_shortage_is_told_from_a_fault(bag: BagContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_spawn", failing(OSError(12, "Cannot allocate memory")))
    with pytest.raises(ShortageError):
        start(bag, ["/bin/true"], {})
    monkeypatch.setattr(os, "posix_spawn", failing(OSError(26, "Text file busy")))
    with pytest.raises(CannotStartError, match="/bin/true: cannot be executed: Text file busy"):
        start(bag, ["/bin/true"], {})
