"""YAML with the line of each key, for errors that name the place; small enough to be read at once.

Aliases let a few lines stand for any number of nodes, so nodes are counted as often as they are named.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

import yaml

from adaptor.errors import ConfigError

Fail = Callable[[str, str], NoReturn]  # raises ConfigError for the path of a key and what is wrong with it

KeyLines = dict[str, int]  # line (from 1) of each key, by path: `$.sites.hpc.limits`

MOST_BYTES = 256 * 1024
MOST_NODES = 10_000  # keys and values, at most; aliases count as what they stand for
DEEPEST = 50  # levels of nesting
LONGEST_KEY = 200  # characters


def read_yaml(text: str, name: str) -> tuple[KeyLines, Any]:
    """The line of each key, and the plain objects of the text.

    Raises:
        ConfigError: it is not YAML, names a key twice, or is too large, too deep or refers to itself.
    """
    if len(text) > MOST_BYTES:
        raise too_large(name)
    lines: KeyLines = {"$": 1}
    loader: _BoundedLoader | None = None
    try:
        loader = _BoundedLoader(text)
        root = loader.get_single_node()
        if root is None:
            return lines, None
        _Expansion().size(root)
        _collect_lines(root, "$", lines, name)  # before merge keys (<<) are resolved
        return lines, loader.construct_document(root)
    except ConfigError:
        raise
    except _TooMuchError as error:
        raise ConfigError(f"{name}:{error.line}: {error}") from None
    except Exception as error:  # PyYAML's own, and what its conversions of tagged values let through
        mark: yaml.Mark | None = getattr(error, "problem_mark", None)
        if mark is None and loader is not None:
            mark = loader.at
        where = f"{name}:{mark.line + 1}" if mark else name
        problem = getattr(error, "problem", None) or str(error) or type(error).__name__
        raise ConfigError(f"{where}: not valid YAML: {problem[:200]}") from error


def too_large(name: str) -> ConfigError:
    return ConfigError(f"{name}: is larger than {MOST_BYTES // 1024} KiB; no site configuration needs that")


class _TooMuchError(Exception):
    def __init__(self, line: int, why: str) -> None:
        """`line`: from 0."""
        super().__init__(why)
        self.line = line + 1


class _BoundedLoader(yaml.SafeLoader):
    """Stops at the first node too many, or too deep."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0
        self._depth = 0
        self.at: yaml.Mark | None = None  # begin of the node whose value was made last

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._nodes += 1
        self._depth += 1
        if self._nodes > MOST_NODES:
            raise _TooMuchError(self.line, f"more than {MOST_NODES:,} keys and values")
        if self._depth > DEEPEST:
            raise _TooMuchError(self.line, f"nested deeper than {DEEPEST} levels")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        self.at = node.start_mark
        return super().construct_object(node, deep=deep)

    def construct_integer(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node)
        return int(text, 0 if text.startswith(("0x", "0o")) else 10)


_OWN_TAGS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp"})
_BoundedLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _OWN_TAGS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
# Numbers are those of YAML 1.2: in YAML 1.1, which PyYAML reads, 010 is 8, 1:30 is 90, and 1e3 is text.
# A date stays text, as a name of an account may look like one.
_SIGNS_AND_DIGITS = "-+0123456789"
_BoundedLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"(?:[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+)$"), list(_SIGNS_AND_DIGITS)
)
_BoundedLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))$"
        r"|\.(?:nan|NaN|NAN)$"
    ),
    list(_SIGNS_AND_DIGITS + "."),
)
_BoundedLoader.add_constructor("tag:yaml.org,2002:int", _BoundedLoader.construct_integer)


class _Expansion:
    """The number of nodes that a node stands for, its aliases followed."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def size(self, node: yaml.Node) -> int:
        """Number of nodes below a node. Raises _TooMuchError: there are too many, or a node is part of
        itself."""
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        line = node.start_mark.line
        if id(node) in self._open:
            raise _TooMuchError(line, "recursive YAML alias")
        self._open.add(id(node))
        size = 1 + sum(map(self.size, _children(node)))
        self._open.remove(id(node))
        if size > MOST_NODES:
            raise _TooMuchError(
                node.start_mark.line, f"more than {MOST_NODES:,} keys and values, its aliases followed"
            )
        self._sizes[id(node)] = size
        return size


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _collect_lines(node: yaml.Node, path: str, lines: KeyLines, name: str) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or len(key.value) > LONGEST_KEY:
                raise ConfigError(f"{name}:{line}: a key must be a text of {LONGEST_KEY} characters at most")
            child = f"{path}.{key.value}"
            if child in lines:
                raise ConfigError(f"{name}:{line}: {child[2:]}: duplicate key")
            lines[child] = line
            _collect_lines(value, child, lines, name)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            child = f"{path}[{index}]"
            lines[child] = value.start_mark.line + 1
            _collect_lines(value, child, lines, name)
