"""Flavor profiles: settings that a provider understands, as JSON text."""

from roadstead_octavia.wire.describe import Body, Resource, named
from roadstead_octavia.wire.kinds import text
from roadstead_octavia.wire.values import column, text_of

POST = Body(
    "FlavorProfilePost",
    {
        "name": text(required=True),
        "provider_name": text(required=True, nullable=False),
        "flavor_data": text(4096, required=True, nullable=False),
    },
)

PUT = Body(
    "FlavorProfilePut",
    {
        "name": text(),
        "provider_name": text(),
        "flavor_data": text(4096),
    },
)

KEYS = named(
    "flavor_data",
    "id",
    "name",
    "provider_name",
)

RESOURCE = Resource(
    noun="Flavor Profile",
    table="flavor_profile",
    rule="flavor-profile",
    one="flavorprofile",
    many="flavorprofiles",
    links="flavorprofile_links",
    argument="flavor_profile_",
    post=POST,
    put=PUT,
    shown={
        "id": column("id"),
        "name": text_of("name"),
        "provider_name": column("provider_name"),
        "flavor_data": column("flavor_data"),
    },
    filters=KEYS,
    sorts=KEYS,
)
