"""The running daemon as far as a question may reach it, and the functions that answer questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from adaptor import api
from adaptor.api.question import Handlers
from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.daemon.upkeep.notifying import Notifier
from adaptor.daemon.upkeep.retention import Retention


class RunningDaemon(Protocol):
    @property
    def core(self) -> Core: ...
    @property
    def sites(self) -> Mapping[str, Site]: ...
    @property
    def retention(self) -> Retention: ...
    @property
    def notifier(self) -> Notifier: ...
    @property
    def stalled(self) -> str:
        """Why nothing can be written down now; empty: it can."""

    def view(self) -> api.DaemonView: ...
    def upkeep(self) -> api.UpkeepView: ...
    def wake_sites(self) -> None: ...
    def stop(self, *, pilots: bool) -> None:
        """End the daemon soon; with `pilots`, cancel them first."""

    async def reload(self) -> api.Reloading:
        """Take over the configuration as it is now. Raises AdaptorError: it cannot be used."""


answers = Handlers[RunningDaemon]()  # the functions of this folder, by their questions
