"""Questions of the command line and their answers."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from adaptor.api import GetBags, Question, decode_answer, decode_question
from adaptor.daemon.client.commands import answers
from adaptor.journal.queries import reads

NESTED = b"\x82\xa4type\xa6Cancel\xa3zzz" + b"\x91" * 200_000 + b"\xc0"
BAD_TEXT = b"\x82\xa4type\xa2\xff\xfe\xa4bags\x90"


@pytest.mark.parametrize("data", [NESTED, BAD_TEXT, b"", b"no message"])
def test_a_hostile_question_or_answer_is_refused_as_any_other(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_question(data)
    with pytest.raises(msgspec.DecodeError):
        decode_answer(GetBags(), data)


@pytest.mark.parametrize("kind", [kind for kind in Question.__subclasses__() if "adaptor" in kind.__module__])
def test_every_question_has_the_handlers_that_its_answer_needs(kind: type[Question[Any]]) -> None:
    """Each answers its question, with the answer that the question names."""
    assert (reads if kind.kept else answers).of(kind) is not None
    for handler in (reads.of(kind), answers.of(kind)):
        if handler is not None:
            _, question, answer = get_type_hints(handler).values()
            assert kind in (question, *get_args(question))
            assert answer == kind.answer_type()


def test_what_clients_ask_imports_no_rules() -> None:
    """Each command would take a fifth longer to start."""
    rooms = ["adaptor.crafting", "adaptor.decisions", "adaptor.runtimes", "adaptor.scheduling"]
    code = f"import sys, adaptor.api; print([name for name in {rooms} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
