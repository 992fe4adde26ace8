"""Work on files as lines of shell for the other side of a connection, and what they print."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path


def private_folder(path: Path) -> list[str]:
    """Make it where it is missing; prints its absolute path."""
    return [
        "umask 077",
        f"folder={_quoted(path)}",
        'mkdir -p -- "$folder" || exit 1',
        'case $(stat -c %u -- "$folder") in "$(id -u)"|0) ;; *) '
        'echo "it, or a link in its place, belongs to another user" >&2; exit 1 ;; esac',
        'cd -- "$folder" || exit 1',
        '[ -O . ] || { echo "belongs to another user" >&2; exit 1; }',
        "case $(stat -c %a .) in *00) ;; *) "
        'echo "is open to other users; close it with: chmod 700 $folder" >&2; exit 1 ;; esac',
        "pwd",
    ]


def write_private(path: Path, size: int) -> list[str]:
    """The `size` bytes that follow the text become the file, all of them or nothing."""
    temporary = path.with_name(f".{path.name}.")
    return [
        "umask 077",
        f"new={_quoted(temporary)}$$",
        'rm -f -- "$new"; set -o noclobber',
        f'head -c {size} >"$new" && [ "$(stat -c %s -- "$new")" = {size} ] && mv -f -- "$new" {_quoted(path)}'
        ' || { rm -f -- "$new"; exit 1; }',
    ]


def read_files(folder: Path, patterns: Sequence[str], most: int) -> list[str]:
    """For `parse_files`. Patterns are ours: words of the shell's own."""
    return [
        f"cd -- {_quoted(folder)} 2>/dev/null || exit 0",
        f"for file in {' '.join(patterns)}; do",
        '    [ -f "$file" ] && [ ! -L "$file" ] || continue',
        f"""    printf '%s\\0' "$file"; tail -c {most} -- "$file" | base64 -w 0; printf '\\0'""",
        "done",
    ]


def parse_files(output: bytes) -> dict[str, bytes]:
    """Raises ValueError: something else was printed, too."""
    words = output.split(b"\0")
    return {
        name.decode(errors="surrogateescape"): base64.b64decode(content)
        for name, content in zip(words[::2], words[1::2], strict=False)
    }


def names(folder: Path) -> list[str]:
    """For `parse_names`."""
    return [
        f"cd -- {_quoted(folder)} 2>/dev/null || exit 0",
        "shopt -s nullglob dotglob; all=(*)",
        """[ ${#all[@]} -eq 0 ] || printf '%s\\0' "${all[@]}\"""",
    ]


def parse_names(output: bytes) -> list[str]:
    return [name.decode(errors="surrogateescape") for name in output.split(b"\0") if name]


def remove(paths: Collection[Path]) -> list[str]:
    return [f"rm -rf -- {_quoted(path)}" for path in paths] or [":"]


def _quoted(path: Path) -> str:
    """As an argument that is not mistaken for an option; a relative path is below the home directory."""
    return shlex.quote(str(path)) if path.is_absolute() else f'"$HOME"/{shlex.quote(str(path))}'
