"""Needs of single calls in place of those of their executor, and variables in addition to its environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec

from adaptor.bagfile.own_options import OwnOptions, explained
from adaptor.resources import OwnNeeds


class Resources(TypedDict, total=False):
    """Resources of a call, as for the executor; those not named are the executor's."""

    cpus: int
    mem: str
    gpus: str | float
    time: str | float
    env: Mapping[str, str]  # variables besides those of the program


class CallTerms(msgspec.Struct, frozen=True):
    """Needs and variables of the calls of one executor, or of one view of it."""

    needs: OwnNeeds = OwnNeeds()
    environment: dict[str, str] = {}

    def but(self, resources: Mapping[str, Any]) -> CallTerms:
        """These terms with the named resources in their place. Raises ValueError: a key or a value cannot
        be."""
        try:
            own = msgspec.convert(resources, OwnOptions)
            needs, environment = own.needs, own.environment or {}
        except (msgspec.ValidationError, ValueError) as error:
            raise ValueError(explained(str(error), OwnOptions)) from None
        return CallTerms(needs.before(self.needs), {**self.environment, **environment})
