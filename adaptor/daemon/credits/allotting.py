"""Bags that are to be done for a cost or by a time: where their tasks shall run, asked again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.task_shares import INTERVAL, Parting, part_tasks
from adaptor.crafting.multisite.target_shares import Wish
from adaptor.daemon.credits.offering import Question
from adaptor.errors import AdaptorError


class _Answer(msgspec.Struct, frozen=True):
    to: Question
    parting: Parting


class Allotments:
    """The last answer for each bag; what changes an answer at once has it asked anew at once.

    The programs are solved in a thread: an answer takes some 25 ms with ten sites, and the first one a
    second more, since scipy is imported for it.
    """

    def __init__(self) -> None:
        self._answers: dict[int, _Answer] = {}
        self._one_at_a_time = asyncio.Lock()
        self.problem = ""
        """Why there are no answers; empty: there are."""

    async def renew(self, questions: Sequence[Question]) -> None:
        """Answer these where that is due; those of other bags are forgotten."""
        async with self._one_at_a_time:
            asked = {each.bag: each for each in questions}
            self._answers = {bag: answer for bag, answer in self._answers.items() if bag in asked}
            due = [each for each in questions if self._is_due(each)]
            if not due:
                return
            try:
                answers, self.problem = await asyncio.to_thread(_answer, due)
            except AdaptorError as error:
                self.problem = str(error)
                self._answers.clear()
                return
            for each in due:
                self._answers.pop(each.bag, None)
            self._answers.update((each.to.bag, each) for each in answers)

    def of(self, bag: int) -> Parting | None:
        """Where the tasks of a bag shall run; None: wherever they are done first."""
        answer = self._answers.get(bag)
        return None if answer is None else answer.parting

    def wishes(self) -> dict[int, Wish]:
        """By bag."""
        return {bag: _wish(answer.parting) for bag, answer in self._answers.items()}

    def _is_due(self, question: Question) -> bool:
        answer = self._answers.get(question.bag)
        if answer is None or answer.to.key != question.key:
            return True
        return abs(question.progress.now - answer.to.progress.now) >= INTERVAL


def _answer(questions: Iterable[Question]) -> tuple[list[_Answer], str]:
    """The answers, and what was wrong with a question that has none: the other bags have theirs.

    Raises AdaptorError: scipy is not installed.
    """
    answers, problem = [], ""
    for each in questions:
        try:
            answers.append(_Answer(each, part_tasks(each.aim, each.progress, each.offers)))
        except BudgetError as error:
            problem = f"where bag {each.bag} is to run cannot be weighed: {error}"
    return answers, problem


def _wish(parting: Parting) -> Wish:
    return Wish(
        shares={site: portion.tasks for site, portion in parting.portions.items()},
        seconds=parting.seconds,
        reason=parting.reason,
    )
