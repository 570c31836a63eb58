"""Operations of flavors."""

from roadstead_octavia.resources.choices import Named
from roadstead_octavia.resources.flavor.wire import RESOURCE

_FLAVORS = Named(RESOURCE, "id", "flavor_profile_id", ("flavor_profile", "Flavor Profile"), "flavor_id")
create, update, delete = _FLAVORS.create, _FLAVORS.update, _FLAVORS.delete
