"""Operations of availability zone profiles."""

from roadstead_octavia.resources.availability_zone_profile.wire import RESOURCE
from roadstead_octavia.resources.choices import Profiles

_PROFILES = Profiles(
    RESOURCE,
    "availability_zone_data",
    "validate_availability_zone",
    ("availability_zone", "availability_zone_profile_id"),
    "Availability Zone Profile",
)
create, update, delete = _PROFILES.create, _PROFILES.update, _PROFILES.delete
