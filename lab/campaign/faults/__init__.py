"""The kinds of fault, by family; importing them fills the catalog."""

from lab.campaign.faults import clusters as clusters
from lab.campaign.faults import disks as disks
from lab.campaign.faults import links as links
from lab.campaign.faults import people as people
from lab.campaign.faults import processes as processes
from lab.campaign.faults.catalog import CATALOG as CATALOG
from lab.campaign.faults.catalog import NoVictimError as NoVictimError
from lab.campaign.faults.catalog import kinds_of as kinds_of
