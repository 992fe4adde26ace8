"""A process that has the imports does the work of a command; the command alone does the rest."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from adaptor.shims.installing import script
from adaptor.shims.real import RULES, RealCommand
from adaptor.shims.serving import leave_behind
from adaptor.shims.start import EXIT, LENGTH, TAKEN, inside, served, socket_name
from tests.living import until

REAL = """#!/bin/sh
echo "$0|$*|$COLOUR|$PWD|$(umask)"
cat
exit 7
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of shims, alone in PATH."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / RULES).write_text("{}")
        for command in ("sbatch", "squeue", "sinfo"):
            (folder / command).write_text(script(folder, command))
            (folder / command).chmod(0o700)
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setenv("ADAPTOR_DIR", str(folder / "state"))
        yield folder


@pytest.fixture
def warm(folder: Path) -> Iterator[Path]:
    """The same, with a process that serves it."""
    process = leave_behind(str(folder))
    assert process is not None
    assert leave_behind(str(folder)) is None, "there is one"
    until((folder / socket_name()).exists, "it listens", pause=0.05)
    yield folder
    process.kill()
    process.wait()


def test_where_nobody_serves_nothing_is_done(folder: Path) -> None:
    assert served(str(folder), "sinfo", []) is None
    assert served(str(folder / "none"), "sinfo", []) is None


def test_output_and_exit_code_are_the_callers(warm: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert served(str(warm), "sinfo", ["-h"]) == 0
    assert served(str(warm), "sbatch", ["-t", "2:00:00", "--wrap", "true"]) == 1
    told = capfd.readouterr()
    assert told.out.split() == ["adaptor*", "up", "infinite", "1", "idle", "adaptor"]
    assert told.err.endswith("small jobs have up to 1h; no sbatch of a scheduler is in PATH\n")


def test_the_caller_becomes_the_real_command(warm: Path, tmp_path: Path) -> None:
    """With its own folder, variables and umask, and the script of its standard input."""
    (tmp_path / "sbatch").write_text(REAL)
    (tmp_path / "sbatch").chmod(0o700)
    text = "#!/bin/sh\n#SBATCH -t 5 --exclusive\n"
    path = f"{warm}:{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(
        ["/bin/sh", "-c", 'umask 27; exec sbatch -J "a b"'],
        input=text, cwd=tmp_path, env={"PATH": path, "COLOUR": "rød"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 7
    assert done.stdout == f"{tmp_path}/sbatch|-J a b|rød|{tmp_path}|0027\n{text}"
    assert "--exclusive" in done.stderr


def test_it_says_which_command_is_real(warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "squeue").write_text(REAL)
    (tmp_path / "squeue").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RealCommand) as real:
        served(str(warm), "squeue", ["-p", "a b"])
    assert (real.value.path, real.value.words) == (f"{tmp_path}/squeue", ["squeue", "-p", "a b"])


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be two users")
def test_another_user_gets_no_answer(warm: Path) -> None:
    """Not even where the folder and the socket are open to all; and such a user leaves no process behind."""
    warm.chmod(0o755)
    (warm / socket_name()).chmod(0o777)
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            os._exit(int(served(str(warm), "sinfo", []) is not None or leave_behind(str(warm)) is not None))
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert served(str(warm), "sinfo", ["-h"]) == 0, "its own user does"


def test_a_container_gets_no_answer(warm: Path) -> None:
    """Its paths may mean other files."""
    code = f"from adaptor.shims.start import served; print(served({str(warm)!r}, 'sinfo', []))"
    words = ["/usr/bin/unshare", "--mount", sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout == "None\n"


def test_callers_that_leave_do_no_harm(warm: Path) -> None:
    for said in (b"", b"\0", b"\0\0\0\5abc", b"\0\0\0\1x"):
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(warm / socket_name()))
            caller.sendall(said)
    assert served(str(warm), "sinfo", ["-h"]) == 0


def test_a_silent_caller_keeps_no_other_waiting(warm: Path) -> None:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(warm / socket_name()))
        assert served(str(warm), "sinfo", ["-h"]) == 0


def test_the_child_that_waits_ends_with_the_process(folder: Path) -> None:
    process = leave_behind(str(folder))
    assert process is not None
    children = psutil.Process(process.pid).children
    until((folder / socket_name()).exists, "it listens", pause=0.05)
    until(children, "a child waits", pause=0.05)
    (child,) = children()
    process.kill()
    process.wait()
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "it ends", pause=0.05)


@pytest.mark.parametrize(
    ("answer", "code"), [(b"", None), (TAKEN, 1), (TAKEN + EXIT + b"3", 3), (TAKEN + EXIT + b"0", 0)]
)
def test_an_answer_that_breaks_off(
    folder: Path, answer: bytes, code: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the work began, the caller does it; later it may be done already."""
    place = os.open(folder, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(inside(place))
        listener.listen()

        def play() -> None:
            connection, _ = listener.accept()
            with connection:
                size = int.from_bytes(connection.recv(LENGTH), "big")
                connection.recv(size, socket.MSG_WAITALL)
                connection.sendall(answer)

        thread = threading.Thread(target=play)
        thread.start()
        assert served(str(folder), "sbatch", []) == code
        thread.join()
    os.close(place)
    assert ("perhaps it was done" in capsys.readouterr().err) is (answer == TAKEN)
