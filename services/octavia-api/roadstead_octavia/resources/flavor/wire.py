"""Flavors: named choices of a flavor profile."""

from roadstead_octavia.wire.describe import Body, Resource, named
from roadstead_octavia.wire.kinds import boolean, text, uuid
from roadstead_octavia.wire.values import column, text_of

POST = Body(
    "FlavorPost",
    {
        "name": text(required=True),
        "description": text(),
        "enabled": boolean(default=True, nullable=False),
        "flavor_profile_id": uuid(required=True, nullable=False),
    },
)

PUT = Body(
    "FlavorPut",
    {
        "name": text(),
        "description": text(),
        "enabled": boolean(nullable=False),
    },
)

KEYS = named(
    "description",
    "enabled",
    "flavor_profile_id",
    "id",
    "name",
)

RESOURCE = Resource(
    noun="Flavor",
    table="flavor",
    rule="flavor",
    one="flavor",
    many="flavors",
    links="flavors_links",
    argument="flavor_",
    post=POST,
    put=PUT,
    shown={
        "id": column("id"),
        "name": text_of("name"),
        "description": text_of("description"),
        "enabled": column("enabled"),
        "flavor_profile_id": column("flavor_profile_id"),
    },
    filters=KEYS,
    sorts=KEYS,
    booleans=frozenset(("enabled",)),
)
