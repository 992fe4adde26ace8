"""YAML with the line of each key, for errors that name the place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import yaml

from adaptor.errors import ConfigError

Fail = Callable[[str, str], NoReturn]
"""Raises ConfigError for the path of a key and what is wrong with it."""

Lines = dict[str, int]
"""Line (from 1) of each key, by path: `$.sites.hpc.limits`."""


def read_yaml(text: str, name: str) -> tuple[Lines, Any]:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date or number that cannot be
        mark = getattr(error, "problem_mark", None)
        where = f"{name}:{mark.line + 1}" if mark else name
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{where}: not valid YAML: {problem}") from error
    lines: Lines = {"$": 1}
    if root is not None:
        try:
            _collect_lines(root, "$", lines, name)
        except RecursionError as error:
            raise ConfigError(f"{name}: recursive YAML alias") from error
    return lines, data


def _collect_lines(node: yaml.Node, path: str, lines: Lines, name: str) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            child = f"{path}.{key.value}"
            line = key.start_mark.line + 1
            if child in lines:
                raise ConfigError(f"{name}:{line}: {child[2:]}: duplicate key")
            lines[child] = line
            _collect_lines(value, child, lines, name)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            child = f"{path}[{index}]"
            lines[child] = value.start_mark.line + 1
            _collect_lines(value, child, lines, name)
