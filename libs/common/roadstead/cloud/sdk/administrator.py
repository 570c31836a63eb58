"""An administrator from clouds.yaml, the environment or an openrc file, through openstacksdk."""

import asyncio
from collections.abc import Mapping
from typing import Any

import openstack
import openstack.exceptions
from keystoneauth1 import exceptions as ka_exceptions

from roadstead.cloud.logins import auth_url
from roadstead.cloud.port import Verdict
from roadstead.cloud.sdk.sender import body_of, headers_of, silence
from roadstead.cloud.sending import NotSent, RawAnswer

_SUFFIX = {"network": "/v2.0", "image": "/v2"}


class SdkAdministrator:
    """An `Administrator`.  cloud: a name of clouds.yaml; openrc: its variables; neither: the environment.

    ValueError, with the remedy, when that names no cloud.
    """

    def __init__(self, cloud: str | None = None, openrc: Mapping[str, str] | None = None) -> None:
        try:
            if openrc is not None:
                self._connection = openstack.connection.Connection(app_name="roadstead", **_arguments(openrc))
            else:
                self._connection = openstack.connect(cloud=cloud, app_name="roadstead")
            endpoint = str(self._connection.config.get_auth_args()["auth_url"])
        except (openstack.exceptions.SDKException, ka_exceptions.ClientException, KeyError) as error:
            raise ValueError(
                f"no cloud to administrate: {error}; name one of clouds.yaml or give an openrc file"
            ) from None
        self.auth_url = auth_url(endpoint)
        self.region_name: str | None = self._connection.config.get_region_name() or None

    async def request(
        self, service: str, method: str, path: str, json: Any = None, query: Mapping[str, str] | None = None
    ) -> RawAnswer:
        return await asyncio.to_thread(self._request, service, method, path, json, dict(query or {}))

    def _request(self, service: str, method: str, path: str, json: Any, query: dict[str, str]) -> RawAnswer:
        session = self._connection.session
        try:
            base = self.auth_url if service == "identity" else self._base(service)
            response = session.request(
                base + path,
                method,
                json=json,
                params=query,
                headers={"Accept": "application/json"},
                raise_exc=False,
                redirect=False,
                log=False,
                timeout=60,
            )
            return RawAnswer(response.status_code, headers_of(response), body_of(response))
        except ka_exceptions.HttpError as error:
            raise NotSent(Verdict.UNAUTHORIZED, f"the administrator's login was refused: {error}") from None
        except ka_exceptions.ClientException as error:
            raise silence(error) from None

    def _base(self, service: str) -> str:
        url = self._connection.session.get_endpoint(
            service_type=service, interface="public", region_name=self.region_name
        )
        if not url:
            raise NotSent(Verdict.UNAVAILABLE, f"the catalog has no public endpoint of {service}")
        suffix = _SUFFIX.get(service, "")
        return str(url).rstrip("/").removesuffix(suffix) + suffix


def _arguments(openrc: Mapping[str, str]) -> dict[str, Any]:
    """OS_ variables as openstacksdk's arguments."""
    apart = {
        "OS_REGION_NAME": "region_name",
        "OS_CACERT": "cacert",
        "OS_AUTH_TYPE": "auth_type",
    }
    plain = {
        "OS_IDENTITY_API_VERSION",
        "OS_INTERFACE",
        "OS_ENDPOINT_TYPE",
        "OS_VOLUME_API_VERSION",
        "OS_IMAGE_API_VERSION",
    }
    arguments: dict[str, Any] = {word: openrc[name] for name, word in apart.items() if openrc.get(name)}
    arguments["identity_api_version"] = "3"
    arguments["auth"] = {
        name.removeprefix("OS_").lower(): value
        for name, value in openrc.items()
        if value and name not in apart and name not in plain
    }
    return arguments
