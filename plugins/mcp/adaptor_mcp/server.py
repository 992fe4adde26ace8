"""The server of the Model Context Protocol, on standard input and output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from adaptor import __version__
from adaptor.errors import AdaptorError
from adaptor_mcp.tools import CHANGING, READING

INSTRUCTIONS = (
    "Runs bags of independent shell commands on a cluster. The usual order: plan, submit, watch until the"
    " bag has ended or paused, results. Your key has a budget of credits, a cap on processors and a canary:"
    " that many tasks of a bag must succeed before more start. The daemon enforces them; only the user can"
    " change them."
)


def make_server(*, read_only: bool) -> MCPServer[Any]:
    """The server with its tools. `read_only`: without the tools that submit and cancel."""
    server: MCPServer[Any] = MCPServer(
        "request-adaptor", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    for tool in READING if read_only else (*READING, *CHANGING):
        server.add_tool(
            _with_errors(tool),
            annotations=ToolAnnotations(read_only_hint=tool in READING, open_world_hint=False),
        )
    return server


def _with_errors(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The tool, whose errors are text for the agent."""

    @functools.wraps(tool)
    def guarded(**given: Any) -> dict[str, Any]:
        try:
            return tool(**given)
        except AdaptorError as error:
            raise ToolError(str(error)) from error

    return guarded
