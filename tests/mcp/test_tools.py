"""What an agent gets of the tools is bounded, and no file is read for it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.errors import UsageError
from adaptor_mcp.tools import _axis, _bag, _bounded, _json

values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5000) | st.booleans(),
    lambda inner: st.lists(inner, max_size=120) | st.dictionaries(st.text(max_size=5), inner, max_size=120),
    max_leaves=200,
)


@given(value=values)
def test_no_list_and_no_text_is_long(value: object) -> None:
    def check(found: object) -> None:
        if isinstance(found, str):
            assert len(found) <= 2001
        if isinstance(found, (list, dict)):
            assert len(found) <= 50
            for each in found.values() if isinstance(found, dict) else found:
                check(each)

    check(_bounded(value, 50))


def test_an_answer_is_json() -> None:
    assert json.loads(json.dumps(_json({"a": [1] * 60, "b": "x"})))["a"] == [1] * 50


def test_values_of_a_template() -> None:
    assert _axis("n", "1:3").rows == [("1",), ("2",), ("3",)]
    assert _axis("n", ["a,b", "@c"]).rows == [("a,b",), ("@c",)], "as they are"
    with pytest.raises(UsageError, match="instead of a file"):
        _axis("n", "@/etc/passwd")


def test_options_are_those_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "1")
    monkeypatch.setenv("ADAPTOR_KEY", "agent")
    options = {"cpus": "2", "time": "10m", "canary": "4"}
    bag = _bag(["true"], "", None, options, 3.0, {"LANG": "C"})
    assert (bag.spec.cpus, bag.spec.time, bag.spec.canary, bag.budget) == (2, 600.0, 4, 3.0)
    assert (bag.spec.name, bag.spec.environment["TOKEN"]) == ("agent", "1")
    assert "ADAPTOR_KEY" not in bag.spec.environment
    for wrong in ({"cpus": "x"}, {"environment": "x"}, {"canary": "0"}):
        with pytest.raises(UsageError):
            _bag(["true"], "", None, wrong, None)
    with pytest.raises(UsageError, match="either tasks or a template"):
        _bag(["true"], "true", None, None, None)
