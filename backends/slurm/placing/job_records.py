"""All records of `scontrol show job`: what is as it was at the last look is compared only. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import msgspec

from backends.numbers import not_understood
from backends.observed.remembered import blocks_of, decoded
from backends.slurm.placing.job_details import BEGINS, BETWEEN, JobDetail, Record, read_record
from backends.slurm.rows import QueueRow


class JobDetails(msgspec.Struct, frozen=True):
    found: dict[str, JobDetail]
    """Details by the jobs' ids, as squeue names them."""
    disputed: tuple[str, ...] = ()
    """Jobs with several records that differ: some of them are text of users."""
    unread: tuple[str, ...] = ()
    """Jobs whose record has another form."""


class JobRecords:
    """Reads `scontrol show job -a -d -o`. A record that is as it was at the last look is only compared."""

    def __init__(self) -> None:
        self._same: dict[int, Record] = {}  # of jobs that wait, by the hash of the whole record
        self._last: dict[bytes, Record] = {}  # by the word with which the record begins

    def read(self, printed: bytes, rows: Mapping[str, QueueRow]) -> JobDetails:
        """Details of the jobs that squeue shows: `rows`, by their ids.

        Raises:
            SchedulerError: the text does not begin as the output of that command.
        """
        begin = 0 if printed.startswith(BEGINS) else printed.find(BETWEEN) + 1
        if begin == 0 and not printed.startswith(BEGINS):
            begin = len(printed)
        if not printed.startswith(BEGINS) and printed.strip() and b"No jobs" not in printed:
            raise not_understood("scontrol show job", decoded(printed.strip()))
        found, disputed, unread = dict[str, JobDetail](), set[str](), set[str]()
        blocks = blocks_of(printed, begin + len(BEGINS), BETWEEN)
        for pieces in blocks:
            for record in self._records(pieces, blocks, rows):
                id, detail = record.id, record.detail
                if detail is None:
                    unread.add(id)
                elif found.setdefault(id, detail) is not detail and found[id] != detail:
                    disputed.add(id)
        self._forget(rows)
        for id in disputed:
            del found[id]
        return JobDetails(found, tuple(sorted(disputed)), tuple(sorted(unread - disputed - found.keys())))

    def _records(
        self, pieces: list[bytes], blocks: Iterator[list[bytes]], rows: Mapping[str, QueueRow]
    ) -> list[Record]:
        """Records of a block, and of those behind it into which the texts of a job reach."""
        same, last, current = self._same, self._last, rows.get
        hashes, begin = [*map(hash, pieces)], 0
        found = [
            record if record is not None and current(record.id) is record.row else None
            for record in map(same.get, hashes)
        ]
        for place in [place for place, record in enumerate(found) if record is None]:
            if place < begin:  # part of the texts of the job before
                continue
            piece, behind = pieces[place], 0
            record = last.get(piece[: piece.find(b" ")])
            if record is None or current(record.id) is not record.row or not record.stands_in(piece):
                record, behind = read_record(piece, rows, partial(_with_more, pieces, place, blocks))
            found[place] = record
            if behind:
                begin = place + 1 + behind
                found[place + 1 : begin] = [None] * len(found[place + 1 : begin])
            elif record is not None:
                if record.word:
                    last[record.word] = record
                if record.detail is not None and record.detail.wish is not None:
                    same[hashes[place]] = record  # of a job that runs, the times go on
        known = [record for record in found if record is not None]
        if len(pieces) > len(found):
            known += self._records(pieces[max(begin, len(found)) :], blocks, rows)
        return known

    def _forget(self, rows: Mapping[str, QueueRow]) -> None:
        """Records that are printed no more, if they are many; until then they only need memory."""
        most = 2 * len(rows) + 1000
        if len(self._same) > most:
            self._same = {}
        if len(self._last) > most:
            self._last = {word: each for word, each in self._last.items() if rows.get(each.id) is each.row}


def _with_more(pieces: list[bytes], place: int, blocks: Iterator[list[bytes]], more: int) -> str:
    """The text of a piece and of `more` pieces behind it, which are taken from the next blocks."""
    while len(pieces) <= place + more and (block := next(blocks, None)):
        pieces += block
    return decoded(BETWEEN.join(pieces[place : place + more + 1]))
