"""Providers: what this deployment can load balance with."""

from roadstead_octavia.wire.describe import Resource
from roadstead_octavia.wire.values import text_of

RESOURCE = Resource(
    noun="Provider",
    table="",
    rule="provider",
    one="",
    many="providers",
    links="",
    argument="",
    post=None,
    put=None,
    shown={
        "name": text_of("name"),
        "description": text_of("description"),
    },
)
