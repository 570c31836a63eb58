"""Availability zone profiles: settings that a provider understands, as JSON text."""

from roadstead_octavia.wire.describe import Body, Resource, named
from roadstead_octavia.wire.kinds import text
from roadstead_octavia.wire.values import column, text_of

POST = Body(
    "AvailabilityZoneProfilePost",
    {
        "name": text(required=True),
        "provider_name": text(required=True, nullable=False),
        "availability_zone_data": text(4096, required=True, nullable=False),
    },
)

PUT = Body(
    "AvailabilityZoneProfilePut",
    {
        "name": text(),
        "provider_name": text(),
        "availability_zone_data": text(4096),
    },
)

KEYS = named(
    "availability_zone_data",
    "id",
    "name",
    "provider_name",
)

RESOURCE = Resource(
    noun="Availability Zone Profile",
    table="availability_zone_profile",
    rule="availability-zone-profile",
    one="availability_zone_profile",
    many="availability_zone_profiles",
    links="availability_zone_profile_links",
    argument="availability_zone_profile_",
    post=POST,
    put=PUT,
    shown={
        "id": column("id"),
        "name": text_of("name"),
        "provider_name": column("provider_name"),
        "availability_zone_data": column("availability_zone_data"),
    },
    filters=KEYS,
    sorts=KEYS,
)
