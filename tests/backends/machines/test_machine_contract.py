"""What every machine does, this one and one that is reached over ssh."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from adaptor.config.schema import SshConfig
from backends.base import SchedulerError
from backends.commands import Commands
from backends.machines import distant, here
from backends.machines.base import CommandHung, Machine
from backends.machines.distant import Distant
from backends.machines.here import Here
from tests.backends.expiring import expired, is_written
from tests.clusters.sshd import ThrowawaySshd
from tests.living import PATIENCE, is_gone

ADDITIONS = {"SITE_SAYS": "a 'b' \"c\"\n$HOME `id` \\"}
ODD = ("", " ", "a b", "it's", '"', "$HOME", "`id`", "\n", "a\nb", "*", "~", "-n", "é ü 日", "\\n", "!x", "#")


@pytest.fixture(params=["here", pytest.param("ssh", marks=pytest.mark.ssh)])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made: Machine = Here(ADDITIONS)
    if request.param == "ssh":
        monkeypatch.setattr(distant, "_SLACK", 60.0)  # the other side has ended it and is busy
        server: ThrowawaySshd = request.getfixturevalue("sshd")
        made = Distant(msgspec.convert(server.site(), SshConfig), ADDITIONS, 20, sys.executable)
    yield made
    made.close()


def run(machine: Machine, *arguments: str, timeout: float = 20) -> tuple[int, str, str]:
    answer = machine.run(arguments, machine.variables(), timeout)
    return answer.status, answer.output, answer.errors


def test_output_errors_and_status_are_told_apart(machine: Machine) -> None:
    assert run(machine, "sh", "-c", "echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")
    assert run(machine, "printf", "no line end") == (0, "no line end", "")
    assert run(machine, "true") == (0, "", "")


@pytest.mark.parametrize(
    ("limit", "command"),
    [
        ("MOST_PRINTED", "yes"),
        ("MOST_IN_A_LINE", "tr '\\0' x < /dev/zero"),
        ("MOST_IN_A_LINE", "tr '\\0' x < /dev/zero >&2"),
    ],
)
def test_a_command_that_prints_without_end_is_ended(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, limit: str, command: str
) -> None:
    machine.variables()
    monkeypatch.setattr(here, limit, 2 * 2**20)
    with pytest.raises(CommandHung, match="printed more than 2M"):
        run(machine, "sh", "-c", f"{command}; sleep 100")


def test_long_answers_and_long_lines_of_a_scheduler_are_read(machine: Machine) -> None:
    status, output, _ = run(
        machine, "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo; yes | head -n 2000000"
    )
    assert (status, len(output)) == (0, 3_000_001 + 4_000_000)


def test_odd_arguments_arrive_as_they_are(machine: Machine) -> None:
    status, output, _ = run(machine, "printf", r"%s\0", *ODD)
    assert status == 0
    assert output.split("\0")[:-1] == list(ODD)


def test_a_command_sees_the_variables_it_is_given_and_no_others(machine: Machine) -> None:
    assert machine.variables()["SITE_SAYS"] == ADDITIONS["SITE_SAYS"]
    assert "HOME" in machine.variables()
    given = {"PATH": "/usr/bin:/bin", **ADDITIONS}
    answer = machine.run(["env", "-0"], given, 20)
    seen = dict(line.split("=", 1) for line in answer.output.split("\0") if line)
    assert seen.items() >= given.items()
    assert seen.keys() - given.keys() <= {"PWD", "SHLVL", "OLDPWD", "_"}


def test_a_command_has_no_input(machine: Machine) -> None:
    assert run(machine, "cat") == (0, "", "")


def test_a_command_that_is_missing_is_told_from_one_that_fails(machine: Machine) -> None:
    commands = Commands(lambda own: own, 20, machine)
    with pytest.raises(SchedulerError, match="no-such-command: cannot be run"):
        commands.run("no-such-command")
    assert commands.run("sh", "-c", "exit 5").status == 5
    assert commands.user() == run(machine, "id", "-un")[1].strip()


def test_a_command_that_hangs_is_ended_with_its_children(machine: Machine, tmp_path: Path) -> None:
    child = tmp_path / "child"

    def hang(limit: int) -> None:
        with pytest.raises(CommandHung, match=f"sh did not answer within {limit}s"):
            run(machine, "sh", "-c", f"trap '' TERM; sleep 300 & echo $! > {child}; wait", timeout=limit)

    expired(hang, lambda _: is_written(child))
    assert is_gone(int(child.read_text()))


def test_a_command_that_never_stops_printing_is_ended(machine: Machine) -> None:
    with pytest.raises(CommandHung):
        run(machine, "sh", "-c", "while :; do echo on and on; done", timeout=1)


def test_large_outputs_arrive_whole(machine: Machine) -> None:
    lines = "seq 300000; seq 300000 >&2; printf '\\377\\n'"
    status, output, errors = run(machine, "sh", "-c", lines)
    counted = "".join(f"{number}\n" for number in range(1, 300_001))
    assert (status, output, errors) == (0, f"{counted}\ufffd\n", counted)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_strangers_link_to_a_private_folder_of_ours_is_refused(machine: Machine, tmp_path: Path) -> None:
    machine.private_folder(tmp_path / "secrets")
    (tmp_path / "mine").symlink_to("secrets")
    assert machine.private_folder(tmp_path / "mine").samefile(tmp_path / "secrets")
    (tmp_path / "link").symlink_to("secrets")
    os.lchown(tmp_path / "link", 54321, 54321)
    with pytest.raises(SchedulerError, match="link"):
        machine.private_folder(tmp_path / "link")


def test_a_private_folder_is_made_once_and_is_private(machine: Machine, tmp_path: Path) -> None:
    wanted = tmp_path / "it's new" / "below"
    made = machine.private_folder(wanted)
    assert made == machine.private_folder(wanted) == wanted
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    made.chmod(0o755)
    with pytest.raises(SchedulerError, match="is open to other users; close it with: chmod 700"):
        machine.private_folder(wanted)


def test_a_folder_that_cannot_be_made_is_named(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SchedulerError, match="file"):
        machine.private_folder(tmp_path / "file" / "below")


@pytest.mark.parametrize("data", [b"", b"\x00\xff}\nexit 1\n", bytes(range(256)) * 4096])
def test_files_are_written_and_read_whole(machine: Machine, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "an 'odd' name"
    path.write_bytes(b"old")
    machine.write_private(path, data)
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert machine.names(tmp_path) == [path.name]
    assert machine.read_files(tmp_path, ["an*", "other-*"], 2**24) == {path.name: data}


def test_a_file_that_cannot_be_written_is_named(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(SchedulerError, match="missing/file: cannot be written"):
        machine.write_private(tmp_path / "missing" / "file", b"data")


def test_files_are_chosen_by_pattern_and_read_at_their_ends(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "log-1.out").write_bytes(b"0123456789")
    (tmp_path / "log-2.txt").write_bytes(b"not this")
    (tmp_path / "log-3.out").mkdir()
    assert machine.read_files(tmp_path, ["log-*.out"], 4) == {"log-1.out": b"6789"}
    assert machine.read_files(tmp_path / "missing", ["*"], 4) == {}
    assert machine.names(tmp_path / "missing") == []


def test_removing_takes_folders_too_and_forgives_what_is_missing(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "folder" / "below").mkdir(parents=True)
    (tmp_path / "-f").write_text("")
    (tmp_path / "kept").write_text("")
    machine.remove([tmp_path / "folder", tmp_path / "-f", tmp_path / "missing"])
    machine.remove([])
    assert machine.names(tmp_path) == ["kept"]


def test_a_long_lived_process_is_talked_to_until_its_input_ends(machine: Machine) -> None:
    work = 'echo "$1" >&2; read -r line; echo "heard $line"; cat'
    talk = machine.start(["sh", "-c", work, "sh", "it's on"])
    pipes = talk.process
    assert pipes.stdin is not None
    assert pipes.stdout is not None
    pipes.stdin.write(b"hello\nmore\x00\xff")
    assert pipes.stdout.readline() == b"heard hello\n"
    pipes.stdin.close()
    assert pipes.stdout.read() == b"more\x00\xff"
    assert pipes.wait(PATIENCE) == 0
    assert talk.complaint() == "it's on"
    talk.end()
