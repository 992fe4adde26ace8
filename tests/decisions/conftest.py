"""A site of the daemon, and a broker with its journal, on which decisions are tried."""

from tests.daemon.conftest import site as site
from tests.scheduling.conftest import world as world
