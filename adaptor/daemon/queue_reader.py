"""Reading a site's queue without a daemon."""

from __future__ import annotations

from adaptor.config.schema import SiteConfig
from adaptor.daemon.sites import limits_of, make_backend
from adaptor.daemon.slots_view import slots_view, unread
from adaptor.protocol.state_directory import private_directory, state_directory
from adaptor.views import SlotsView
from backends.base import SchedulerError
from backends.rules import site_rules


def read_site(name: str, config: SiteConfig) -> SlotsView:
    """The free slots of a site's queue, read now; one that does not answer has a problem instead."""
    try:
        backend = make_backend(name, config, private_directory(state_directory()))
        rules = site_rules(config, backend, limits_of(config, backend), float(config.pad))
        return slots_view(name, backend.queue_state(), rules)
    except SchedulerError as error:
        return unread(name, str(error))
