"""The verbs of a volume.  Each ends the pass: Cinder works on, and a later read tells what came of it."""

from enum import StrEnum

from roadstead.cloud.names import volume_metadata, volume_name
from roadstead.cloud.port import CloudError, Verdict
from roadstead.quantity import whole_gib
from roadstead.reconcile.decision import Code, Step, Stop, Yield
from roadstead.reconcile.kind import Action
from roadstead_volumes.volume.decide import VolumeVerb
from roadstead_volumes.volume.observe import VolumePass


async def create(p: VolumePass) -> Step:
    """POST volume with size in GiB, the class as its type, and metadata that bears our keys."""
    resource, spec = p.resource, p.resource.spec
    body = {
        "name": volume_name(resource.key.id),
        "size": whole_gib(spec.size),
        "volume_type": spec.volumeClassID,
        "metadata": volume_metadata(
            [*(spec.tags or ()), *(resource.metadata.tags or ())],
            volume_id=resource.key.id,
            network_id=spec.networkID,
            region_id=p.region_id,
            identity_id=p.identity_id or "",
            organization_id=resource.metadata.organizationId or "",
            project_id=resource.key.project,
        ),
    }
    answer = await p.write(p.principal, "block-storage", "volume.create", json={"volume": body})
    p.note("volume", answer.value["id"])
    return Stop(Yield(Code.BUSY, "the volume was asked for"))


async def delete(p: VolumePass) -> Step:
    """DELETE volume; it is gone when a later list shows it no more."""
    assert p.seen is not None
    assert p.seen.found is not None
    try:
        await p.write(p.principal, "block-storage", "volume.delete", id=p.seen.found.id)
    except CloudError as error:
        if error.verdict is not Verdict.GONE:
            raise
    return Stop(Yield(Code.BUSY, "the volume was deleted; looking again"))


ACTIONS: dict[StrEnum, Action] = {VolumeVerb.CREATE: create, VolumeVerb.DELETE: delete}
