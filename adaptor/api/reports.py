"""Reports on the resources that a bag has used, request by request, and advice on better options."""

from __future__ import annotations

import msgspec

from adaptor.api.bags import BagView
from adaptor.api.credits import CreditLine
from adaptor.api.forecasts import FirstForecastView
from adaptor.api.pilots import PilotRecord
from adaptor.api.question import KeyAccess, Question
from adaptor.api.sites import DonationView
from adaptor.forecast.record import Record
from adaptor.resources import TaskSize


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a report."""

    requests: int
    donations: int = 0  # nodes that were donated, without a formal request
    paid: float  # processor-seconds held by pilots
    used: float  # by attempts of this bag that were recorded as a result
    used_by_others: float = 0.0  # the same of other bags in these pilots
    others: list[int] = []  # ids of those bags; the journal may have forgotten more
    running: float = 0.0  # by attempts of any bag that run now
    wasted: float
    turnaround: float | None  # from submission to the last result; None while the bag runs
    first_result: float | None  # from submission to the first result
    gpu_paid: float = 0.0  # GPU-seconds held by pilots


class MeasuredView(msgspec.Struct, frozen=True, kw_only=True):
    """Resources that the tasks of a bag were given, and those that tasks with a result used.

    Tasks with needs of their own, or that ran out of memory, are left out.
    """

    task: TaskSize  # resources that each was given
    sites: list[str]  # on which they may run; empty: any
    done: int
    wall: float  # of all results together
    longest: float
    cpu: float  # of all results together
    memory: int  # bytes, the largest of all; 0: not known
    first_tr: float | None
    """The tr of the first formal request that ran any; None: there was none, or tasks differ in what they
    need."""
    paid: float  # processor-seconds of its pilots
    used: float


class BagReport(msgspec.Struct, frozen=True, kw_only=True):
    """`adaptor report BAG`: every request that ran its tasks or was issued for it."""

    bag: BagView
    requests: list[PilotRecord]
    totals: Totals
    credits: CreditLine | None = None  # None: it has cost nothing yet and has no budget
    donation: DonationView | None = None  # None: none of its tasks ever ran on a donated node
    first_forecast: FirstForecastView | None = None
    """First forecast of the bag; None: none was made, as for all bags that share their pilots."""
    forecast_record: Record | None = None  # of all bags; None: this one has no forecast
    advice: list[str] = []  # better options, if advice was asked for


class GetReport(Question[BagReport], frozen=True):
    for_keys = KeyAccess.READ
    kept = True

    bag: int


class AdviceView(msgspec.Struct, frozen=True):
    measured: MeasuredView
    lines: list[str]  # empty where no daemon has computed them: `adaptor.advice`


class GetAdvice(Question[AdviceView], frozen=True):
    """Ask for options that would have been better for a bag."""

    kept = True
    takes_time = True

    bag: int
