"""`python -m lab.mutants [--room NAME]...`: how many mutants of each room its tests kill.

A mutant is a copy of the tree with one small change; it meets the tests of its room that reach the changed
line. Which test reaches what is kept in the folder `--kept` until the room changes. `--unneeded` lists tests
without which the same branches are reached and the same mutants killed: read them before you delete one, for
a branch is no claim.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from lab.mutants.cover import cover
from lab.mutants.judging import Tree, reach_of, sample, unneeded, verdicts
from lab.mutants.rooms import rooms


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m lab.mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    every = rooms()
    parser.add_argument("--room", action="append", choices=every, metavar="NAME", help=", ".join(every))
    parser.add_argument("--count", type=int, default=50, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unneeded", action="store_true")
    parser.add_argument("--kept", type=Path, default=Path(tempfile.gettempdir()) / "adaptor-mutants")
    arguments = parser.parse_args()
    arguments.kept.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder))
        for name in arguments.room or every:
            room = every[name]
            reach = reach_of(room, tree, arguments.kept)
            judged = []
            for verdict in verdicts(room, tree, reach, sample(room, arguments.count, arguments.seed)):
                judged.append(verdict)
                if not verdict.killed:
                    how = "survives" if verdict.reached else "no test reaches"
                    print(f"  {verdict.file}:{verdict.mutant.line}: {how}: {verdict.mutant}", flush=True)
            killed, reached = (sum(getattr(one, what) for one in judged) for what in ("killed", "reached"))
            lines = room.lines_of_tests()
            first = {"", *cover(reach, lines)}
            others = sum(one.killer not in first for one in judged)
            print(
                f"{name}: {killed} of {len(judged)} killed, {others} of them by tests that add no branch;"
                f" {reached} reached",
                flush=True,
            )
            if arguments.unneeded:
                names = unneeded(room, reach, judged)
                for test in names:
                    print(f"  {lines.get(test, 0):4} lines {reach.seconds[test]:6.2f} s  {test}")
                print(
                    f"{name}: {len(names)} of {len(reach.branches)} test functions, "
                    f"{sum(lines.get(test, 0) for test in names)} of {sum(lines.values())} lines"
                )


if __name__ == "__main__":
    main()
