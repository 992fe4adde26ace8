"""The kinds of fault, by family; importing them fills the catalog."""

from tests.campaign.faults import clusters as clusters
from tests.campaign.faults import disks as disks
from tests.campaign.faults import links as links
from tests.campaign.faults import people as people
from tests.campaign.faults import processes as processes
from tests.campaign.faults.catalog import CATALOG as CATALOG
from tests.campaign.faults.catalog import NoVictimError as NoVictimError
from tests.campaign.faults.catalog import kinds_of as kinds_of
