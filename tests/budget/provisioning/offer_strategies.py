"""Sites as hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from adaptor.budget.provisioning.site_offers import HeldSlots, SiteOffer
from adaptor.budget.provisioning.task_time import TaskTime


@st.composite
def task_times(draw):
    mean = draw(st.floats(10, 2000))
    return TaskTime(mean, mean * draw(st.sampled_from([0.0, 0.1, 0.4, 1.0])))


@st.composite
def offers(draw, most_sites=4, held=False):
    return [
        SiteOffer(
            name=f"site{number}",
            price=draw(st.floats(0.1, 10)),
            processors=draw(st.integers(1, 40)),
            task=draw(task_times()),
            charging_unit=draw(st.sampled_from([1.0, 60.0, 900.0, 3600.0])),
            startup=draw(st.sampled_from([0.0, 30.0])),
            held=_held(draw) if held and draw(st.booleans()) else (),
        )
        for number in range(draw(st.integers(1, most_sites)))
    ]


def _held(draw):
    return (HeldSlots(draw(st.integers(0, 1)), draw(st.floats(0, 3600))),)


def site(name="here", price=1.0, processors=10, mean=600.0, deviation=0.0, **more):
    return SiteOffer(name=name, price=price, processors=processors, task=TaskTime(mean, deviation), **more)
