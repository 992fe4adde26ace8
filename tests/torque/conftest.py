"""Programs that stand in for Torque's commands."""

from tests.backends.conftest import fake

__all__ = ["fake"]
