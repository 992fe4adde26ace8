"""Questions of clients and their answers: `api.GetBags` is answered by `api.Bags`."""

from adaptor.api.bags import *  # noqa: F403
from adaptor.api.credits import *  # noqa: F403
from adaptor.api.daemon import *  # noqa: F403
from adaptor.api.forecasts import *  # noqa: F403
from adaptor.api.frozen import *  # noqa: F403
from adaptor.api.grants import *  # noqa: F403
from adaptor.api.page import *  # noqa: F403
from adaptor.api.pilots import *  # noqa: F403
from adaptor.api.question import *  # noqa: F403
from adaptor.api.reports import *  # noqa: F403
from adaptor.api.sites import *  # noqa: F403
from adaptor.api.tasks import *  # noqa: F403
