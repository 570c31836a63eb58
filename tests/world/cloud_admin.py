"""What the administrator of a cloud sees: every project's objects, by name and owner."""

import contextlib
import re
from collections.abc import Mapping
from typing import Any

from tests.world.hand import Hand, Refused

Row = dict[str, Any]


class CloudAdmin:
    """Reads; the changes of others are in foreigner.py."""

    def __init__(self, hand: Hand) -> None:
        self.hand = hand

    async def _list(self, service: str, path: str, key: str, **query: str) -> list[Row]:
        found: list[Row] = (await self.hand.ask(service, "GET", path, query=query))[key]
        return found

    # ------------------------------------------------------------ identity

    async def projects(self, **query: str) -> list[Row]:
        return await self._list("identity", "/projects", "projects", **query)

    async def users(self, **query: str) -> list[Row]:
        return await self._list("identity", "/users", "users", **query)

    async def tags(self, project: str) -> list[str]:
        return sorted((await self.hand.ask("identity", "GET", f"/projects/{project}/tags"))["tags"])

    # ------------------------------------------------------------ compute

    async def servers(self, project: str | None = None, name: str | None = None) -> list[Row]:
        """Servers of a project (or of all), as the administrator reads them."""
        query = {"all_tenants": "1", "limit": "1000"}
        if project is not None:
            query["project_id"] = project
        if name is not None:
            query["name"] = f"^{re.escape(name)}$"
        return await self._list("compute", "/servers/detail", "servers", **query)

    async def server(self, server_id: str, name: str) -> Row | None:
        """The one server that bears this id in its metadata; None when there is none."""
        found = [s for s in await self.servers(name=name) if s["metadata"].get("serverID") == server_id]
        assert len(found) <= 1, f"{len(found)} servers of {server_id}"
        return found[0] if found else None

    async def attachments(self, server: str) -> list[Row]:
        return await self._list("compute", f"/servers/{server}/os-volume_attachments", "volumeAttachments")

    async def keypairs(self, user: str) -> list[Row]:
        return [k["keypair"] for k in await self._list("compute", "/os-keypairs", "keypairs", user_id=user)]

    async def server_groups(self, project: str) -> list[Row]:
        rows = await self._list("compute", "/os-server-groups", "server_groups", all_projects="1")
        return [g for g in rows if g.get("project_id", project) == project]

    # ------------------------------------------------------------ network

    async def network_objects(self, noun: str, **query: str) -> list[Row]:
        """noun: networks, subnets, routers, ports, floatingips, security-groups, security-group-rules."""
        return await self._list("network", f"/{noun}", noun.replace("-", "_"), **query)

    # ------------------------------------------------------------ volumes and load balancers

    async def volumes(self, project: str | None = None, name: str | None = None) -> list[Row]:
        query = {"all_tenants": "1"}
        if project is not None:
            query["project_id"] = project
        if name is not None:
            query["name"] = name
        return await self._list("block-storage", "/volumes/detail", "volumes", **query)

    async def volume(self, volume_id: str) -> Row | None:
        """The volume of a resource id; None when there is none."""
        found = await self.volumes(name=f"volume-{volume_id}")
        assert len(found) <= 1, f"{len(found)} volumes of {volume_id}"
        return found[0] if found else None

    async def octavia(self, noun: str, **query: str) -> list[Row]:
        """noun: loadbalancers, listeners, pools, healthmonitors."""
        return await self._list("load-balancer", f"/lbaas/{noun}", noun, **query)

    async def members(self, pool: str) -> list[Row]:
        return await self._list("load-balancer", f"/lbaas/pools/{pool}/members", "members")

    # ------------------------------------------------------------ what is left

    async def named_after(self, kind: str, ident: str, name: str) -> list[tuple[str, Row]]:
        """(sort, object) of everything in the cloud that a resource's names lead to."""
        found: list[tuple[str, Row]] = []
        if kind == "identity":
            wanted = f"unikorn-identity-{ident}"
            found += [("project", r) for r in await self.projects(name=wanted)]
            found += [("user", r) for r in await self.users(name=wanted)]
        elif kind == "network":
            for noun in ("networks", "subnets", "routers"):
                found += [(noun, r) for r in await self.network_objects(noun, name=f"network-{ident}")]
        elif kind == "securitygroup":
            rows = await self.network_objects("security-groups", name=f"securitygroup-{ident}")
            found += [("security group", r) for r in rows]
        elif kind == "server":
            server = await self.server(ident, name)
            found += [("server", server)] if server is not None else []
            found += [("port", r) for r in await self.network_objects("ports", name=f"server-{ident}")]
            found += [
                ("floating ip", {**r, "name": r["description"]})
                for r in await self.network_objects("floatingips")
                if r.get("description") == f"server-{ident}"
            ]
        elif kind == "volume":
            found += [("volume", r) for r in await self.volumes(name=f"volume-{ident}")]
        elif kind == "loadbalancer":
            for noun in ("loadbalancers", "listeners", "pools", "healthmonitors"):
                rows = await self.octavia(noun)
                found += [(noun, r) for r in rows if str(r["name"]).startswith(f"lb-{ident}")]
        return found

    async def project_content(self, project: str) -> list[tuple[str, str]]:
        """(sort, name) of what lies in a project, the default security group of Neutron left out."""
        found = [("server", str(r["name"])) for r in await self.servers(project)]
        found += [("volume", str(r["name"])) for r in await self.volumes(project)]
        for noun in ("networks", "subnets", "routers", "ports", "floatingips", "security-groups"):
            rows = await self.network_objects(noun, project_id=project)
            found += [
                (noun, str(r.get("name") or r["id"]))
                for r in rows
                if (noun, r.get("name")) != ("security-groups", "default")
            ]
        found += [
            ("loadbalancer", str(r["name"])) for r in await self.octavia("loadbalancers", project_id=project)
        ]
        return found

    async def remove_domain(self, domain: str) -> None:
        """Take away a deployment's domain with all that is in it."""
        for noun, rows in (
            ("projects", await self.projects(domain_id=domain)),
            ("users", await self.users(domain_id=domain)),
        ):
            for row in rows:
                with contextlib.suppress(Refused):
                    await self.hand.ask("identity", "DELETE", f"/{noun}/{row['id']}")
        await self.hand.ask("identity", "PATCH", f"/domains/{domain}", {"domain": {"enabled": False}})
        await self.hand.ask("identity", "DELETE", f"/domains/{domain}")


def properties(image: Mapping[str, Any]) -> dict[str, str]:
    """The custom properties that tell what an image is."""
    return {k: v for k, v in image.items() if k.startswith("unikorn:") or k == "architecture"}
