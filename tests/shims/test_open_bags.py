"""Which jobs may join an open bag, and the one reason why another may not."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.shims.open_bags import OpenBag
from adaptor.shims.small_jobs import SmallJob
from tests.shims.test_small_jobs import quiet as quiet
from tests.shims.test_small_jobs import small


def opened_by(job: SmallJob) -> OpenBag:
    return OpenBag(1, job.variables, job.script.body, tuple(job.spec.sites), job.rest())


def test_a_job_of_another_size_may_join() -> None:
    assert opened_by(small()).why_not(small("-c", "2", "-t", "6")) == ""


def test_the_reason_is_the_one_that_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = msgspec.structs.replace(opened_by(small()), sites=("far",))
    assert elsewhere.why_not(small()) == "another site (far; this one: any)"
    assert opened_by(small()).why_not(small("--signal=USR1")).startswith("other options")
    monkeypatch.setenv("ONLY_THERE", "1")
    with_more = opened_by(small())
    monkeypatch.delenv("ONLY_THERE")
    assert with_more.why_not(small()).startswith("variables that it lacks (ONLY_THERE)")


def test_of_many_variables_five_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        monkeypatch.setenv(f"X{number}", "")
    with_more = opened_by(small())
    for number in range(7):
        monkeypatch.delenv(f"X{number}")
    assert with_more.lacking(small()) == [f"X{number}" for number in range(7)]
    assert "(X0, X1, X2, X3, X4 …)" in with_more.why_not(small())
