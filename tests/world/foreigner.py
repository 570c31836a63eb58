"""Somebody else with rights in the cloud, who changes our objects or puts others beside them."""

from typing import Any

from tests.world.cloud_admin import CloudAdmin, Row
from tests.world.hand import Refused


class Foreigner:
    """Every change goes through the cloud's own interfaces, as an administrator."""

    def __init__(self, cloud: CloudAdmin) -> None:
        self._cloud = cloud
        self._ask = cloud.hand.ask
        self._made: list[tuple[str, str]] = []

    # ------------------------------------------------------------ servers

    async def _server(self, ref: Any) -> str:
        found = await self._cloud.server(ref.id, ref.name)
        assert found is not None, f"there is no server {ref.name} in the cloud"
        return str(found["id"])

    async def act(self, ref: Any, **action: Any) -> None:
        """One server action, such as `act(server, rebuild={"imageRef": ...})`; hyphens are written as underscores."""
        body = {name.replace("os_", "os-"): value for name, value in action.items()}
        await self._ask("compute", "POST", f"/servers/{await self._server(ref)}/action", body)

    async def rebuild(self, ref: Any, image: str) -> None:
        await self.act(ref, rebuild={"imageRef": image})

    async def stop(self, ref: Any) -> None:
        await self.act(ref, os_stop=None)

    async def start(self, ref: Any) -> None:
        await self.act(ref, os_start=None)

    async def hard_reboot(self, ref: Any) -> None:
        await self.act(ref, reboot={"type": "HARD"})

    async def delete_server(self, ref: Any) -> None:
        await self._ask("compute", "DELETE", f"/servers/{await self._server(ref)}")

    async def rename_server(self, ref: Any, name: str) -> str:
        """Another name in Nova; the server's id there."""
        ident = await self._server(ref)
        await self._ask("compute", "PUT", f"/servers/{ident}", {"server": {"name": name}})
        return ident

    # ------------------------------------------------------------ network

    async def delete(self, noun: str, ident: str) -> None:
        """noun: ports, floatingips, security-group-rules, subnets, ..."""
        await self._ask("network", "DELETE", f"/{noun}/{ident}")

    async def change(self, noun: str, ident: str, **fields: Any) -> None:
        single = noun.removesuffix("s").replace("-", "_")
        await self._ask("network", "PUT", f"/{noun}/{ident}", {single: fields})

    async def make(self, noun: str, **fields: Any) -> Row:
        """A network object of somebody else's; `tidy` takes it away."""
        single = noun.removesuffix("s").replace("-", "_")
        made: Row = (await self._ask("network", "POST", f"/{noun}", {single: fields}))[single]
        self._made.append((f"network/{noun}", str(made["id"])))
        return made

    # ------------------------------------------------------------ volumes and load balancers

    async def make_volume(self, name: str, **fields: Any) -> Row:
        """A volume in the administrator's project."""
        body = {"volume": {"name": name, "size": 1, **fields}}
        made: Row = (await self._ask("block-storage", "POST", "/volumes", body))["volume"]
        self._made.append(("block-storage/volumes", str(made["id"])))
        return made

    async def delete_volume(self, ident: str) -> None:
        await self._ask("block-storage", "DELETE", f"/volumes/{ident}")

    async def make_loadbalancer(self, name: str, subnet: str, project: str) -> Row:
        """An empty load balancer in that project; `delete_loadbalancer` takes it away."""
        body = {"loadbalancer": {"name": name, "vip_subnet_id": subnet, "project_id": project}}
        made: Row = (await self._ask("load-balancer", "POST", "/lbaas/loadbalancers", body))["loadbalancer"]
        return made

    async def delete_loadbalancer(self, ident: str) -> None:
        await self._ask("load-balancer", "DELETE", f"/lbaas/loadbalancers/{ident}", query={"cascade": "true"})

    # ------------------------------------------------------------ images

    async def make_image(self, name: str, properties: dict[str, str], **fields: Any) -> str:
        """A public image with content; its id."""
        body = {
            "name": name,
            "disk_format": "raw",
            "container_format": "bare",
            "visibility": "public",
            **fields,
            **properties,
        }
        made = await self._ask("image", "POST", "/images", body)
        ident = str(made["id"])
        await self._ask("image", "PUT", f"/images/{ident}/file", b"disk", media="application/octet-stream")
        self._made.append(("image/images", ident))
        return ident

    async def deactivate_image(self, ident: str, *, again: bool = False) -> None:
        """again: reactivate."""
        word = "reactivate" if again else "deactivate"
        await self._ask("image", "POST", f"/images/{ident}/actions/{word}")

    async def delete_image(self, ident: str) -> None:
        await self._ask("image", "DELETE", f"/images/{ident}")

    async def tidy(self) -> None:
        """Take away what was made here and is still there."""
        for place, ident in reversed(self._made):
            service, _, noun = place.partition("/")
            try:
                await self._ask(service, "DELETE", f"/{noun}/{ident}")
            except Refused as refusal:
                if refusal.status != 404:
                    raise
        self._made.clear()
