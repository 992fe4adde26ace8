"""What is sent to a distant shell, run by a real shell here."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.machines.distant import Printed, command_lines, printed, script, talk
from tests.examples import examples
from tests.fuzzing import damaged, fuzz, survives

MARK = "adaptor-0123456789abcdef"
odd = st.binary(max_size=30).map(lambda data: os.fsdecode(data.replace(b"\0", b"-")))
names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True).map("V{}".format)


def shell(text: bytes, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["/bin/bash", "-s"], input=text, capture_output=True, check=False, timeout=60, env=environment
    )


@examples(60)
@given(st.lists(odd, max_size=4), st.dictionaries(names, odd, max_size=3))
def test_any_arguments_and_variables_arrive_as_they_are(words: list[str], values: dict[str, str]) -> None:
    present = {"PATH": os.environ["PATH"], "UNWANTED": "x", "ODD%%": "() { :; }"}
    wanted = {"PATH": present["PATH"], **values}
    show = 'printf "%s\\0" "$#" "$@"; env -0'
    lines = command_lines(["sh", "-c", show, "sh", *words], wanted, present, 30)
    done = shell(script(lines, MARK), present)
    seen = printed(done.stdout, done.stderr, MARK)
    assert seen is not None
    number, *entries = seen.output.split(b"\0")
    assert entries[: int(number)] == [os.fsencode(word) for word in words]
    pairs = dict(entry.split(b"=", 1) for entry in entries[int(number) :] if entry)
    assert {os.fsencode(name): os.fsencode(value) for name, value in wanted.items()}.items() <= pairs.items()
    assert not {b"UNWANTED", b"ODD%%"} & pairs.keys()


TEXT = script(["echo done"], MARK)


@given(st.integers(0, len(TEXT.rstrip()) - 1))
@examples(60)
def test_a_text_that_was_cut_short_does_nothing(length: int) -> None:
    assert b"done" not in shell(TEXT[:length]).stdout


def test_what_follows_the_text_is_left_for_the_lines() -> None:
    done = shell(script(["head -c 3; echo; cat"], MARK) + b"abcdef}")
    assert printed(done.stdout, done.stderr, MARK) == Printed(0, b"abc\ndef}", b"")


def test_a_program_that_is_talked_to_gets_all_that_follows() -> None:
    assert shell(talk(["cat"], MARK) + b"echo not me\n").stdout == f"{MARK}\necho not me\n".encode()


@pytest.mark.parametrize(
    ("output", "errors"),
    [
        ("", ""),
        ("Welcome!\n", "Connection closed\n"),
        ("{m}\npartly", "{m}\n"),
        ("{m}\n", "{m}\n\n{m} "),
        ("{m}\n", "{m}\n\n{m} 1"),
    ],
)
def test_no_end_means_no_answer(output: str, errors: str) -> None:
    assert printed(output.format(m=MARK).encode(), errors.format(m=MARK).encode(), MARK) is None


def test_what_the_login_shell_says_is_left_out() -> None:
    output = f"Welcome to the cluster\n{MARK}\nanswer".encode()
    errors = f"stty: not a tty\n{MARK}\nslow\n{MARK} 7\n".encode()
    assert printed(output, errors, MARK) == Printed(7, b"answer", b"slow")


OUTPUT = [
    f"Welcome\n{MARK}\nanswer\nof two lines",
]
ERRORS = [f"stty: not a tty\n{MARK}\nslow\n{MARK} 7\n", f"{MARK}\n\n{MARK} 0\n"]


@fuzz
@given(damaged(OUTPUT), damaged(ERRORS))
def test_what_a_distant_shell_prints(output: str, errors: str) -> None:
    data = output.encode(errors="surrogatepass")
    survives(printed, data, errors.encode(errors="surrogatepass"), MARK)
