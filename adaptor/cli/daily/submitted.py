"""What is told of a new bag."""

from __future__ import annotations

from typing import Any

import click

from adaptor import api
from adaptor.cli.json_output import print_json
from adaptor.cli.words import plural


def tell_submitted(question: api.Submit, answer: api.Submitted, *, as_json: bool = False) -> None:
    """The number of the new bag and of its tasks, and what earlier bags have of what was asked."""
    known = sum(each.done + each.to_run for each in answer.taken_over)
    new = len(question.bag.tasks) - known
    if as_json:
        told: dict[str, Any] = {"bag": answer.bag or None, "tasks": new}
        if question.resume:
            told["taken_over"] = [
                {"bag": each.bag, "done": each.done, "to_run": each.to_run} for each in answer.taken_over
            ]
        print_json({**told, "refused": answer.refused} if answer.refused else told)
        tell_refused(answer)
        return
    if answer.bag:
        click.echo(f"bag {answer.bag}: {plural(new, 'task')}")
    for each in answer.taken_over:
        click.echo(f"not run again: {_held(each)}")
    if not answer.bag:
        click.echo("nothing is left to run: no new bag")
    elif question.resume and not answer.taken_over:
        click.echo(f"no earlier bag {question.bag.spec.name} of this folder has any of these tasks")
    tell_refused(answer)


def tell_refused(answer: api.Submitted | api.Appended) -> None:
    """Say which tasks have failed at once, since nothing can ever run them."""
    if not answer.refused:
        return
    click.echo(f"adaptor: {plural(answer.refused, 'task')} can never run, and failed at once:", err=True)
    for reason in answer.reasons:
        click.echo(f"  {reason}", err=True)
    if answer.refused > len(answer.reasons):
        click.echo(f"  and {answer.refused - len(answer.reasons):,} more", err=True)


def _held(each: api.TakenOver) -> str:
    done = [f"{plural(each.done, 'task')} done"] if each.done else []
    to_run = [f"{plural(each.to_run, 'task')} still to run"] if each.to_run else []
    return f"{' and '.join(done + to_run)} in bag {each.bag}"
