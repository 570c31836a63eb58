"""Reading a volume: one detailed list by its name, and the offered classes before a first create."""

from roadstead.cloud.names import volume_name
from roadstead.quantity import whole_gib
from roadstead.reconcile.passing import Pass
from roadstead_volumes.classes import problems
from roadstead_volumes.inventory import VolumeClassInventory
from roadstead_volumes.volume.model import CloudVolume, VolumeSeen, VolumeSpec, VolumeStatus

VolumePass = Pass[VolumeSpec, VolumeStatus, VolumeSeen]


async def observe(p: VolumePass) -> VolumeSeen:
    """One list request, none for what is another tenant's or waits for its claim; a second one when the classes are not fresh."""
    if p.region is None or p.region.openstack is None:
        return VolumeSeen(no_surface=True)
    network = p.target("network", p.resource.spec.networkID)
    identity = p.target("identity", p.identity_id or "")
    here = (p.region_id, p.resource.key.project)
    if any(v is not None and (v.key.region, v.key.project) != here for v in (network, identity)):
        return VolumeSeen(foreign=True)
    if p.resource.deleting:
        return VolumeSeen() if p.resource.status.claimRef is not None else VolumeSeen(await find(p))
    if network is not None and network.metadata.get("identityId") not in (None, p.identity_id):
        return VolumeSeen(mismatch=True)
    found = await find(p)
    if found is not None or p.resource.ever_provisioned:
        # accepted once: a class that was withdrawn since does not keep the volume from coming back
        return VolumeSeen(found)
    inventory: VolumeClassInventory = p.extras["inventory"]
    spec = p.resource.spec
    offered = await inventory.offered(p.region_id, p.region, spec.volumeClassID)
    if offered is None:
        return VolumeSeen(refusals=None)
    return VolumeSeen(refusals=tuple(problems(offered, spec.volumeClassID, whole_gib(spec.size))))


async def find(p: VolumePass) -> CloudVolume | None:
    """The volume of exactly our name in the principal's project (INV-132); one read more where a list lacks what we noted."""
    name = volume_name(p.resource.key.id)
    found = await p.find(p.principal, "block-storage", "volume.detail", name)
    if found is None:
        held = p.remembered.get("volume")
        await p.not_contradicted(
            p.principal, "block-storage", "volume.get", held, lambda volume: volume.get("name") == name
        )
    else:
        p.note("volume", found["id"])
    return CloudVolume(str(found["id"]), str(found.get("status") or "").lower()) if found else None
