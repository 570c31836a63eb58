"""What is kept of a cloud, and what our objects bear in it: looked for in a world where every kind was made."""

import re
from typing import Any

from tests.docs.reading import OPERATIONS, code, section, table
from tests.world.admin import Admin
from tests.world.services import ALL
from tests.world.sim import SimWorld
from tests.world.virtual import run_virtual

from roadstead.store.api import Row
from roadstead.store.postgres.tables import tables_of
from roadstead.subjects import Key
from roadstead_compute.server.model import server_id

NET = {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}
RULES = {"rules": [{"direction": "ingress", "protocol": "tcp", "port": {"number": 22}}]}
TAGS = [
    {"name": "kubernetes.example.org/node-pool", "value": "workers"},
    {"name": "region.unikorn-cloud.org/server-id", "value": "mine"},
    {"name": "Not A Tag", "value": "left out"},
]
VLANS = {
    "providerNetworks": {
        "physicalNetwork": "physnet1",
        "vlan": {"segments": [{"startId": 100, "endId": 110}]},
    }
}
LISTENER = {
    "name": "web",
    "protocol": "tcp",
    "port": 80,
    "pool": {"members": [{"address": "192.168.10.200", "port": 80}], "healthCheck": {}},
}


def named(world: SimWorld, path: str, plural: str) -> dict[str, str]:
    return {item["name"]: item["id"] for item in Admin(world.cloud).call("GET", path)[plural]}


async def everything(world: SimWorld) -> dict[str, Key]:
    """One of each kind, provisioned; server and volume with tags, server and load balancer with a public address."""
    types = named(world, "/volume/v3/types", "volume_types")
    region = await world.register(
        network=VLANS,
        loadBalancer={"algorithm": "SOURCE_IP_PORT"},
        blockStorage={"volumeClasses": {"selector": {"ids": [types["standard"]]}}},
    )
    identity = await world.apply(world.key("identity"), "tenant", {"provider": "openstack"})
    network = await world.apply(world.key("network"), "net-1", NET, identityId=identity.id)
    group = await world.apply(world.key("securitygroup"), "web", RULES, networkId=network.id)
    disk = {"networkID": network.id, "volumeClassID": types["standard"], "size": "10Gi", "tags": TAGS}
    volume = await world.apply(world.key("volume"), "data", disk)
    wish = {
        "flavorID": named(world, "/compute/v2.1/flavors", "flavors")["small"],
        "image": {"id": named(world, "/image/v2/images", "images")["ubuntu-24.04"]},
        "networks": [{"id": network.id}],
        "securityGroups": [{"id": group.id}],
        "publicIPAllocation": {"enabled": True},
        "volumes": [{"id": volume.id}],
        "tags": TAGS,
    }
    server = await world.apply(world.key("server", server_id(network.id, "web-1")), "web-1", wish, tags=TAGS)
    front = {"listeners": [LISTENER], "publicIP": True}
    balancer = await world.apply(world.key("loadbalancer"), "front", front, networkId=network.id)
    made = {k.kind: k for k in (region, identity, network, group, volume, server, balancer)}
    for key in made.values():
        await world.until(key, "provisioned")
    await world.quiet()
    return made


def rows(world: SimWorld) -> list[Row]:
    return [row for store in world.stores.values() for row in store._held.rows.values()]


def documents(world: SimWorld) -> set[str]:
    return {name for store in world.stores.values() for name in store._held.documents}


def cloud_ids(world: SimWorld) -> set[str]:
    """Ids of everything that our calls made in the cloud."""
    return {ident for _, ident in Admin(world.cloud).objects()}


def holding(value: Any, wanted: set[str], path: str = "") -> set[str]:
    """Paths in a JSON value below which one of these texts stands."""
    if isinstance(value, dict):
        return {p for k, v in value.items() for p in holding(v, wanted, f"{path}.{k}")}
    if isinstance(value, list | tuple):
        return {p for v in value for p in holding(v, wanted, path)}
    return {path.lstrip(".")} if isinstance(value, str) and value in wanted else set()


def test_inv_008_the_schema_has_no_mirror_of_cloud_objects() -> None:
    """The tables are the queue's and the log's; none is named for anything that a cloud holds, nor has a column for its id."""
    tables = {
        table.name: {column.name for column in table.columns} for table in tables_of("any").tables.values()
    }
    assert set(tables) == {"resource", "work", "outbox", "history", "document"}
    nouns = r"network|subnet|router|port|server|instance|group|volume|flavor|image|address|vip|openstack|nova|neutron|cinder"
    names = set(tables) | {column for columns in tables.values() for column in columns}
    assert {name for name in names if re.search(nouns, name)} == set()


def test_inv_008_inv_009_of_everything_made_only_the_identity_record_and_the_vlan_table_are_kept() -> None:
    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            made = await everything(world)
            kept = {row.key: row for row in rows(world)}
            assert set(kept) == set(made.values()), "a row that nobody asked for"
            assert {row.key.kind for row in kept.values() if row.record is not None} == {"identity"}
            # the monitor's shards are no cloud's, and the region's credential is what its operator handed in
            ours = {"monitor.shards", f"region-credential.{world.region}"}
            assert documents(world) - ours == {f"vlan.{world.region}"}

    run_virtual(scenario())


def test_inv_006_inv_009_cloud_ids_in_rows_are_copies_in_the_status_alone() -> None:
    """Where an id of the cloud stands outside of the sealed record: in no column but status, observed and what a spec names."""

    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            await everything(world)
            ids = cloud_ids(world) - set(named(world, "/image/v2/images", "images").values())
            found: dict[str, set[str]] = {}
            for row in rows(world):
                columns = {
                    "metadata": row.metadata,
                    "spec": row.spec,
                    "references": dict(row.references),
                    "consumers": list(row.consumers),
                    "intents": list(row.intents),
                    "status": row.status,
                }
                for name, value in columns.items():
                    for path in holding(value, ids):
                        found.setdefault(name, set()).add(f"{row.key.kind} {path}")
            assert set(found) == {"status"}
            assert {
                "identity projectId",
                "identity userId",
                "network openstack.networkID",
                "network openstack.subnetID",
            } <= found["status"]

    run_virtual(scenario())


# ---------------------------------------------------------------- what objects bear

NOUNS = {
    "projects": "project",
    "users": "user",
    "application_credentials": "application credential",
    "os-server-groups": "server group",
    "os-keypairs": "key pair",
    "networks": "network",
    "subnets": "subnet",
    "routers": "router",
    "security-groups": "security group",
    "ports": "port",
    "servers": "server",
    "volumes": "volume",
    "loadbalancers": "load balancer",
    "floatingips": "floating IP",
}


def bodies(world: SimWorld, user_names: set[str]) -> list[tuple[str, dict[str, Any]]]:
    """(noun, object) of every accepted create that these users sent."""
    found = []
    for call in world.cloud.log:
        noun = NOUNS.get(call.path.rstrip("/").rpartition("/")[2])
        if noun is None or call.method != "POST" or not 200 <= call.status < 300:
            continue
        if call.user_name in user_names and isinstance(call.body, dict):
            (inner,) = [value for value in call.body.values() if isinstance(value, dict)]
            found.append((noun, inner))
    return found


def filled(template: str, made: dict[str, Key], world: SimWorld) -> str:
    """The documented spelling with the ids of this world in it."""
    text = template.replace("<organization>", world.organization).replace("<project>", world.project)
    for kind, key in made.items():
        text = text.replace(f"<{kind}>", key.id)
    return text


def test_inv_012_names_tags_and_metadata_are_those_of_the_operators_page() -> None:
    """Every object that the product made, as it was sent: documented name, documented keys, and nothing else."""

    async def scenario() -> None:
        async with SimWorld.running(ALL) as world:
            made = await everything(world)
            page = {
                row["object"]: row
                for row in table(section(OPERATIONS.read_text(), "What our objects bear"), "object")
            }
            ours = {"roadstead-provider", f"unikorn-identity-{made['identity'].id}"}
            sent = bodies(world, ours)
            assert {noun for noun, _ in sent} == set(page), (
                "a kind of object is made and not documented, or the reverse"
            )
            for noun, body in sent:
                row = page[noun]
                more = [filled(text, made, world) for text in code(row["more"])]
                if code(row["name"]):
                    assert body["name"] == filled(code(row["name"])[0], made, world), noun
                if noun == "floating IP":
                    assert body["description"] in more
                assert set(body.get("tags", ())) == set(more if noun == "project" else ()), noun
                keys = {text for text in more if re.fullmatch(r"[a-z]+:[a-z_]+|[a-z]+ID", text)}
                users = {"kubernetes:node_pool"} if noun in ("server", "volume") else set()
                given = set(body.get("metadata", {}))
                extra = given - keys - users
                # a user's tag that maps to a key of ours on another kind is still the user's
                assert extra <= ({"region:server_id"} if noun == "volume" else set()), (noun, extra)
                assert keys | users <= given, noun
                if noun == "server":
                    assert body["metadata"]["region:server_id"] == made["server"].id, "our key wins"

    run_virtual(scenario())
