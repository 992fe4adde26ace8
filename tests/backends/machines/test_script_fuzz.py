"""Whatever a distant shell prints: what was asked for, nothing, or an error."""

from __future__ import annotations

from hypothesis import given

from backends.machines.distant import printed
from tests.fuzzing import damaged, fuzz, survives

MARK = "adaptor-0123456789abcdef"
OUTPUT = [
    f"Welcome\n{MARK}\nanswer\nof two lines",
]
ERRORS = [f"stty: not a tty\n{MARK}\nslow\n{MARK} 7\n", f"{MARK}\n\n{MARK} 0\n"]


@fuzz
@given(damaged(OUTPUT), damaged(ERRORS))
def test_what_a_distant_shell_prints(output: str, errors: str) -> None:
    data = output.encode(errors="surrogatepass")
    survives(printed, data, errors.encode(errors="surrogatepass"), MARK)
