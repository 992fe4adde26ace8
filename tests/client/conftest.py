"""The same played daemon as for the command line."""

from tests.cli.conftest import serve, state

__all__ = ["serve", "state"]
