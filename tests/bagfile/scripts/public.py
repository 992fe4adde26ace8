"""`python -m tests.bagfile.scripts.public`: what becomes of public array scripts, in a table.

With a list of files as arguments, of these instead.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from adaptor.bagfile.scripts.script import Submission, script_bag
from adaptor.config.schema import SiteConfig
from adaptor.errors import BagFileError

FILE = Path(__file__).parents[3] / "fixtures" / "scripts" / "public.txt"
ONE = {"hpc": SiteConfig(backend="slurm", partition="batch")}
TWO = {**ONE, "other": SiteConfig(backend="slurm", partition="short")}
KINDS = ("unchanged", "remark", "site", "ignore", "refused")
"""Fates of a script: it runs, or runs and a remark names what it does not get, or asks for `--site`, or for
`--ignore`, or has to be changed."""


class PublicScript(msgspec.Struct, frozen=True):
    repository: str
    found: str
    """Way in which it was found: `drawn`, or what it may do otherwise than under sbatch."""
    kind: str
    """Kind among KINDS, if one site is configured."""
    text: str


def public_scripts() -> list[PublicScript]:
    _, *parts = FILE.read_text(encoding="utf-8").split("\n=== ")
    found = []
    for part in parts:
        head, _, text = part.partition("\n")
        found.append(PublicScript(*head.split(" | "), text.rstrip("\n") + "\n"))
    return found


def kind_of(text: str, sites: dict[str, SiteConfig], chosen: Sequence[str] = ()) -> str:
    """Kind of a script among KINDS."""
    submission = Submission(
        folder="/here", user="ada", host="login1", home="/home/ada", environment={"PATH": "/bin"},
        sites=sites, options={"sites": tuple(chosen)} if chosen else {},
    )  # fmt: skip
    try:
        bag = script_bag(text.encode(errors="surrogateescape"), "job.sh", "job.sh", submission)
    except BagFileError as error:
        if not chosen and len(sites) > 1 and kind_of(text, sites, ["hpc"]) in ("unchanged", "remark"):
            return "site"
        said = str(error)
        return "ignore" if "--ignore" in said and "once the other lines" not in said else "refused"
    return "remark" if bag.remarks else "unchanged"


def main(files: Sequence[str]) -> int:
    """Print how many scripts are of each kind, where one site is configured and where two are."""
    drawn = [each.text for each in public_scripts() if each.found == "drawn"]
    texts = [Path(file).read_bytes().decode(errors="replace") for file in files] or drawn
    counts = [Counter(kind_of(text, sites) for text in texts) for sites in (ONE, TWO)]
    print(f"of {len(texts)} scripts    one site   two sites")
    for kind in KINDS:
        print(f"{kind:20}", *(f"{count[kind]:8}" for count in counts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
