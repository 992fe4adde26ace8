"""Whatever people write as a bag: tasks and options, or an error that names the place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.bagfile.json_lines import parse_json_lines
from adaptor.bagfile.options import OPTIONS, parse_option
from adaptor.bagfile.parameters import parse_parameter
from adaptor.bagfile.parse import decode, parse_shell_lines
from adaptor.bagfile.template import expand
from tests.fuzzing import damaged, fuzz, recorded, survives

NOW = 1_800_000_000.0
LINES = [
    *recorded("bags/*.bag"),
    "#ADAPTOR cpus=2 mem=4G retries=0 deadline=12h prefer=fast site=a,b\necho 'x y'\n",
    "#ADAPTOR budget=2.5 allocation=mixed output=out/x name='a b'\ntrue\n",
]
JSON = [
    *recorded("bags/*.jsonl"),
    '{"argv": ["a", "b"], "cwd": "/x", "env": {"A": "1"}, "name": "n"}',
    '{"command": "echo"}',
]
VALUES = ["1", "4G", "1h 30m", "2026-11-22T08:00", "a,b", "fast", "mixed", "0.5", "out/x"]
PARAMETERS = ["frame=1:100", "x=0.1:0.5:0.1", "scene=a,b,c", "n=001:010", "n=10:1:-1"]
TEMPLATES = ["render {x} -f {y}", "echo {{}} {x}{y}", "'{x}' {y}"]


@fuzz
@given(damaged(LINES))
def test_any_lines(text: str) -> None:
    survives(parse_shell_lines, text, "tasks.bag", NOW)
    survives(decode, text.encode(errors="surrogatepass"), "tasks.bag")


@fuzz
@given(damaged(JSON))
def test_any_json_lines(text: str) -> None:
    survives(parse_json_lines, text, "tasks.jsonl")


@fuzz
@given(st.sampled_from([option.key for option in OPTIONS]), damaged(VALUES))
def test_any_value_of_an_option(key: str, text: str) -> None:
    survives(parse_option, key, text, NOW, errors=(ValueError,))


@fuzz
@given(damaged(PARAMETERS).filter(lambda text: "=@" not in text))
def test_any_parameter(text: str) -> None:
    survives(parse_parameter, text)


@fuzz
@given(damaged(TEMPLATES), st.lists(damaged(["a", "b c"]), min_size=1, max_size=3))
def test_any_template(template: str, values: list[str]) -> None:
    survives(expand, template, {"x": values, "y": ["1", "2"]})
