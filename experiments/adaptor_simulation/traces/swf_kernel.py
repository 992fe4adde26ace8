# mypy: disallow-untyped-decorators=False
"""The inner loop of the reader, compiled by numba: bytes to rows of numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

NEWLINE, BLANK, SEMICOLON, PLUS, MINUS, POINT, ZERO, NINE = b"\n ;+-.09"
ROWS, ODD, LONG = 0, 1, 2
"""Indices of the counts: rows written, lines to look at again, lines with more fields than asked."""


@njit(cache=True)
def parse_rows(
    text: npt.NDArray[np.uint8],
    table: npt.NDArray[np.float64],
    odd: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> None:
    """Read lines of plain decimal numbers; blank lines and comments are passed over.

    Args:
        text: the file; its last byte is a newline.
        table: (lines, fields), a row per line of data; rows of odd lines are to be overwritten.
        odd: (lines, 4): row, line number from 1, begin and end of each line that has too few fields
            or one that is not a plain number.
        counts: ROWS, ODD and LONG, 0 to begin with.
    """
    begin, line = 0, 0
    while begin < len(text):
        end = begin
        while text[end] != NEWLINE:
            end += 1
        line += 1
        at = begin
        while at < end and text[at] <= BLANK:
            at += 1
        if at < end and text[at] != SEMICOLON:
            row = counts[ROWS]
            fields = _parse_line(text, at, end, table[row])
            if fields < table.shape[1]:
                k = counts[ODD]
                odd[k, 0], odd[k, 1], odd[k, 2], odd[k, 3] = row, line, begin, end
                counts[ODD] += 1
            elif fields > table.shape[1]:
                counts[LONG] += 1
            counts[ROWS] += 1
        begin = end + 1


@njit(cache=True)
def _parse_line(text: npt.NDArray[np.uint8], at: int, end: int, row: npt.NDArray[np.float64]) -> int:
    """Fill a row; how many numbers there were, one more than its length for more, -1 for other text."""
    field = 0
    while at < end:
        if field == len(row):
            return field + 1
        sign = 1.0
        if text[at] == MINUS or text[at] == PLUS:
            sign = -1.0 if text[at] == MINUS else 1.0
            at += 1
        digits, value, scale = 0, 0.0, 0.0
        while at < end and (ZERO <= text[at] <= NINE or (text[at] == POINT and scale == 0.0)):
            if text[at] == POINT:
                scale = 1.0
            else:
                value = value * 10.0 + (text[at] - ZERO)
                scale *= 10.0
                digits += 1
            at += 1
        if digits == 0 or digits > 15 or (at < end and text[at] > BLANK):
            return -1
        row[field] = sign * (value / scale if scale > 0.0 else value)
        field += 1
        while at < end and text[at] <= BLANK:
            at += 1
    return field
