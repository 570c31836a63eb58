"""Operations of availability zones."""

from roadstead_octavia.resources.availability_zone.wire import RESOURCE
from roadstead_octavia.resources.choices import Named

_ZONES = Named(
    RESOURCE,
    "name",
    "availability_zone_profile_id",
    ("availability_zone_profile", "Availability Zone Profile"),
    "availability_zone",
)
create, update, delete = _ZONES.create, _ZONES.update, _ZONES.delete
