"""Comments that look like directives: what their author expects of them would not happen. Pure."""

from __future__ import annotations

import re

_OURS_ALMOST = re.compile(r"#(?:adaptor(?=[\s:=]|$)|\s*adaptor:?\s+[a-z][a-z_-]*=\S)", re.IGNORECASE)
_OURS = re.compile(r"#ADAPTOR(?:\s|$)")
_TOOLS = {
    "SBATCH": "sbatch",
    "PBS": "qsub",
    "BSUB": "bsub",
    "MSUB": "msub",
    "OAR": "oarsub",
    "COBALT": "qsub of Cobalt",
    "FLUX": "flux",
    "PJM": "pjsub",
    "HQ": "HyperQueue",
    "DISBATCH": "disBatch",
}
_OF_TOOL = re.compile(rf"#(?P<tool>{'|'.join(_TOOLS)})(?=[\s:]|$)", re.IGNORECASE)
_GRID_ENGINE = re.compile(r"#\$\s+-\w")
_GREASY = re.compile(r"\[#.*#\]")
_SCRIPTS = ("SBATCH", "PBS", "BSUB", "MSUB")


def almost_ours(line: str) -> bool:
    """True if a comment would be an `#ADAPTOR` line without a space, a colon or small letters."""
    return _OURS.match(line) is None and _OURS_ALMOST.match(line) is not None


def tool_of(line: str) -> str:
    """The command that reads a comment as a directive, such as `bsub`; empty: no command that is known."""
    found = _OF_TOOL.match(line)
    return _TOOLS[found["tool"]] if found and found["tool"] in _TOOLS else ""


def directive_in_list(line: str, as_script: str) -> str | None:
    """Why a line of a list cannot be skipped as a comment, with the way out; None: it can.

    Args:
        line: stripped.
        as_script: how a file becomes a batch script.
    """
    if almost_ours(line):
        return "is a comment, and looks like options: write '#ADAPTOR key=value'"
    if found := _OF_TOOL.match(line):
        tool = found["tool"].upper()
        if tool in _SCRIPTS and tool == found["tool"]:
            return f"is of a batch script; {as_script}"
        return f"is a directive of {_TOOLS[tool]}, which is not followed in a list of tasks; {_WAY_OUT}"
    if _GRID_ENGINE.match(line):
        return f"is of a batch script; {as_script}"
    if _GREASY.match(line):
        return (
            "begins with what GREASY reads as dependencies; write JSON Lines with the keys 'id' and 'after',"
            " or take it out"
        )
    return None


_WAY_OUT = "take it out, or put a space behind '#' to keep it as a comment"
