"""The pages of docs/reference/ have what the code says: `make reference` writes it into them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from code_reference import keys_text, options_text
from command_reference import commands_text

FOLDER = Path(__file__).parents[1] / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "configuration.md": keys_text,
    "bag-options.md": options_text,
    "commands.md": commands_text,
}
_WRITTEN = re.compile(r"(?<=<!-- written by make reference -->\n).*(?=<!-- end -->)", re.DOTALL)


def current(name: str) -> str:
    """The text of a page with what the code says today between its marks."""
    text = PAGES[name]()
    return _WRITTEN.sub(lambda _: f"\n{text}\n", (FOLDER / name).read_text(encoding="utf-8"))


def main() -> int:
    for name in PAGES:
        (FOLDER / name).write_text(current(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
