"""Availability zones, known by their names."""

from roadstead_octavia.wire.describe import Body, Resource, named
from roadstead_octavia.wire.kinds import boolean, text, uuid
from roadstead_octavia.wire.values import column, text_of

POST = Body(
    "AvailabilityZonePost",
    {
        "name": text(required=True, nullable=False),
        "description": text(),
        "enabled": boolean(default=True, nullable=False),
        "availability_zone_profile_id": uuid(required=True, nullable=False),
    },
)

PUT = Body(
    "AvailabilityZonePut",
    {
        "description": text(),
        "enabled": boolean(nullable=False),
    },
)

KEYS = named(
    "availability_zone_profile_id",
    "description",
    "enabled",
    "name",
)

RESOURCE = Resource(
    noun="Availability Zone",
    table="availability_zone",
    rule="availability-zone",
    one="availability_zone",
    many="availability_zones",
    links="availability_zones_links",
    argument="availability_zone_",
    post=POST,
    put=PUT,
    shown={
        "name": text_of("name"),
        "description": text_of("description"),
        "enabled": column("enabled"),
        "availability_zone_profile_id": column("availability_zone_profile_id"),
    },
    filters=KEYS,
    sorts=KEYS,
    booleans=frozenset(("enabled",)),
)
