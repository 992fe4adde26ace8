"""Recorded answers of a real OpenPBS, and how its qstat and pbsnodes print values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from backends.machines.base import CommandAnswer
from backends.pbs.fields import PbsRecord, parse_dsv
from backends.pbs.openpbs.server import JOB
from tests.backends.answering import answer_of

FIXTURES = Path(__file__).parents[3] / "fixtures" / "openpbs"
SITUATIONS = ("01-idle", "02-busy", "06-down")
"""Situations of which everything was recorded in every form."""


def recorded(name: str) -> str:
    """Text of a recording as our commands read it: bytes that are not UTF-8 are replaced."""
    return (FIXTURES / f"{name}.txt").read_bytes().decode(errors="replace")


def answers() -> dict[str, CommandAnswer]:
    found = msgspec.json.decode((FIXTURES / "answers.json").read_bytes(), type=dict[str, dict[str, Any]])
    return {name: answer_of(**answer) for name, answer in found.items()}


def recorded_jobs() -> dict[str, dict[str, dict[str, Any]]]:
    """By recording, then by id."""
    found: dict[str, dict[str, dict[str, Any]]] = msgspec.json.decode((FIXTURES / "jobs.json").read_bytes())
    return found


def job_record(recording: str, id: str | None = None) -> PbsRecord:
    """The (only) job of a recording, by way of the text that `qstat -F dsv` has for it."""
    jobs = recorded_jobs()[recording]
    (chosen,) = jobs if id is None else (id,)
    (record,) = parse_dsv(dsv_line(chosen, flat(jobs[chosen])) + "\n", JOB)
    return record


def recorded_nodes() -> dict[str, str]:
    """Output of `pbsnodes -a -v`, by recording."""
    found = msgspec.json.decode((FIXTURES / "nodes.json").read_bytes())
    return {name: long_text(nodes) for name, nodes in found.items()}


def flat(attributes: Mapping[str, Any]) -> dict[str, str]:
    """`{"Resource_List": {"ncpus": 4}}` as `{"Resource_List.ncpus": "4"}`; a list of variables in one."""
    values: dict[str, str] = {}
    for name, value in attributes.items():
        if name == "Variable_List":
            values[name] = ",".join(f"{key}={text}" for key, text in value.items())
        elif isinstance(value, dict):
            values.update({f"{name}.{key}": str(inner) for key, inner in value.items()})
        else:
            values[name] = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return values


def long_text(things: Mapping[str, Mapping[str, Any]]) -> str:
    blocks = (
        name + "\n" + "".join(f"     {key} = {value}\n" for key, value in flat(attributes).items())
        for name, attributes in things.items()
    )
    return "\n".join(blocks)


def dsv_line(id: str, values: Mapping[str, str]) -> str:
    """One line of `qstat -f -F dsv`: OpenPBS's prt_attr() in src/cmds/qstat.c, FORMAT_DSV."""
    return "|".join([f"{JOB}{id}", *(f"{name}={printed(value)}" for name, value in values.items())])


def printed(value: str) -> str:
    """escape_delimiter(), convert_feed_chars() and show_nonprint_chars() one after the other."""
    escaped = []
    for here, following in zip(value, [*value[1:], "\0"], strict=False):
        literal = here == "\\" and following not in "'\","
        escaped.append("\\" + here if literal or here == "|" else here)
    fed = "".join(escaped).replace("\n", "\\n").replace("\f", "\\f")
    return "".join(f"^{chr(ord(c) + 64)}" if ord(c) < 32 and c != "\t" else c for c in fed)
