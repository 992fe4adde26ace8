"""Whatever people write as a bag: tasks and options, or an error that names the place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.bagfile.options import OPTIONS, parse_option
from adaptor.bagfile.parse import decode, parse_json_lines, parse_shell_lines
from adaptor.bagfile.scripts.script import Submission, script_bag
from adaptor.bagfile.template import Axis, expand, parse_parameter
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
SCRIPTS = [
    "#!/bin/sh\n#SBATCH -J 'a b' --array=1-9:2%3 -o x_%A_%3a.txt # note\n#SBATCH --mem=4G -c 2 -t 1-2:3\nls",
    "#!/bin/sh\n#PBS -N a -J 1-9:2 -l select=1:ncpus=4:mem=8gb,walltime=1:00:00\n#PBS -v A=1,B=2 -j oe\nls",
    "#!/bin/sh\n#SBATCH --gres=gpu:a100:2 --export=A=1\n#ADAPTOR retries=2\n#SBATCH --signal=B:USR1@9\n",
]
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
    survives(expand, template, [Axis(("x",), [(value,) for value in values]), Axis(("y",), [("1",), ("2",)])])


@fuzz
@given(damaged(SCRIPTS))
def test_any_script(text: str) -> None:
    given = Submission(folder="/here", user="u", host="h", home="/home/u", environment={})
    survives(script_bag, text.encode(errors="surrogatepass"), "job.sh", "job.sh", given)
