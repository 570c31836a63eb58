"""Operations of flavor profiles."""

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.errors import not_found
from roadstead_octavia.resources import generic
from roadstead_octavia.resources.choices import Profiles, authorize
from roadstead_octavia.resources.flavorprofile.wire import RESOURCE

_PROFILES = Profiles(
    RESOURCE, "flavor_data", "validate_flavor", ("flavor", "flavor_profile_id"), "Flavor profile"
)
create, update, delete = _PROFILES.create, _PROFILES.update, _PROFILES.delete


async def show(call: Call) -> Answer:
    """200; the placeholder has a refusal of its own."""
    if call.ids[0] == generic.NIL:
        authorize(call, RESOURCE, "get_one")
        raise not_found(_PROFILES.noun, generic.NIL)
    return await generic.show(call, RESOURCE)
