"""A cloud made ready for scenarios: images that fail on demand, and the product's own configure and register."""

from roadstead.cloud.administration import Administrator
from roadstead.cloud.configure import Wanted, configure
from roadstead.cloud.register import Registered, register
from tests.world.base import Offer
from tests.world.cloud_admin import CloudAdmin, properties
from tests.world.foreigner import Foreigner

BAD_IMAGES = {"no-boot": {"lab:boot": "fail"}, "no-rebuild": {"lab:rebuild": "fail"}, "deactivated": {}}


async def offer_of(cloud: CloudAdmin, foreigner: Foreigner, prefix: str) -> Offer:
    """What the cloud has, and the images that scenarios need besides; they bear the prefix and are tidied away."""
    images = (await cloud.hand.ask("image", "GET", "/images", query={"limit": "200"}))["images"]
    by_name = {i["name"]: i for i in images}
    offered = {"A": str(by_name["debian-12"]["id"]), "B": str(by_name["ubuntu-24.04"]["id"])}
    base = properties(by_name["debian-12"])
    for word, orders in BAD_IMAGES.items():
        offered[word] = await foreigner.make_image(f"{prefix}-{word}", {**base, **orders})
    await foreigner.deactivate_image(offered["deactivated"])
    flavors = (await cloud.hand.ask("compute", "GET", "/flavors"))["flavors"]
    types = (await cloud.hand.ask("block-storage", "GET", "/types"))["volume_types"]
    external = await cloud.network_objects("networks", **{"router:external": "true"})
    return Offer(
        offered,
        {f["name"]: str(f["id"]) for f in flavors},
        {t["name"]: str(t["id"]) for t in types if t["name"] in ("standard", "fast")},
        str(external[0]["id"]),
    )


async def registered(
    admin: Administrator, offer: Offer, prefix: str, region_id: str | None = None
) -> Registered:
    """The deployment's domain, project and user, and the documents that register the region.

    variables of the result: configure's values besides.
    """
    done = await configure(admin, Wanted(prefix=prefix))
    made = register(
        name=prefix,
        namespace="roadstead",
        endpoint=done.values["AUTH_URL"],
        region_id=region_id,
        region_name=done.values.get("REGION_NAME"),
        create_secret=True,
        values=done.values,
        volume_classes=tuple(offer.classes.values()),
        algorithm="SOURCE_IP_PORT",
        external_network=offer.external,
    )
    made.variables["DOMAIN_ID"] = done.values["DOMAIN_ID"]
    return made
