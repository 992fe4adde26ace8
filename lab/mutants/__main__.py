"""`python -m lab.mutants [--room NAME]...`: how many mutants of each room its tests kill.

A mutant is a copy of the tree with one small change; it meets the tests of its room that reach the changed
line. Which test reaches what is kept in the folder `--kept` until the room changes. `--unneeded` lists tests
without which the same branches are reached and the same mutants killed: read them before you delete one, for
a branch is no claim.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from lab.mutants.cover import cover
from lab.mutants.judging import Tree, reach_of, sample, unneeded, verdicts
from lab.mutants.rooms import ROOT, rooms

ROOMS = rooms()


@click.command()
@click.option(
    "--room", "names", multiple=True, type=click.Choice([*ROOMS]), metavar="NAME", help=", ".join(ROOMS)
)
@click.option("--count", default=50, show_default=True, help="Mutants of each room.")
@click.option("--seed", default=1, show_default=True)
@click.option("--below", default="", metavar="PATH", help="Only of files whose paths begin so.")
@click.option("--unneeded", "lists_unneeded", is_flag=True, help="List tests that nothing needs.")
@click.option(
    "--kept",
    type=click.Path(path_type=Path),
    default=ROOT / "build" / "mutants",
    help="What tests reach.  [default: build/mutants]",
)
def main(
    names: tuple[str, ...], count: int, seed: int, below: str, *, lists_unneeded: bool, kept: Path
) -> None:
    """Judge the tests of rooms, all unless some are named, by mutants."""
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder))
        for name in names or ROOMS:
            room = ROOMS[name]
            reach = reach_of(room, tree, kept)
            judged = []
            for verdict in verdicts(room, tree, reach, sample(room, count, seed, below)):
                judged.append(verdict)
                if not verdict.killed:
                    how = "survives" if verdict.reached else "no test reaches"
                    click.echo(f"  {verdict.file}:{verdict.mutant.line}: {how}: {verdict.mutant}")
            killed, reached = (sum(getattr(one, what) for one in judged) for what in ("killed", "reached"))
            lines = room.lines_of_tests()
            first = {"", *cover(reach, lines)}
            others = sum(one.killer not in first for one in judged)
            click.echo(
                f"{name}: {killed} of {len(judged)} killed, {others} of them by tests that add no branch;"
                f" {reached} reached",
            )
            if lists_unneeded:
                tests = unneeded(room, reach, judged)
                for test in tests:
                    click.echo(f"  {lines.get(test, 0):4} lines {reach.seconds[test]:6.2f} s  {test}")
                click.echo(
                    f"{name}: {len(tests)} of {len(reach.branches)} test functions, "
                    f"{sum(lines.get(test, 0) for test in tests)} of {sum(lines.values())} lines"
                )


if __name__ == "__main__":
    main()
