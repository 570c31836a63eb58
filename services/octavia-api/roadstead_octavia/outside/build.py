"""Neutron and Barbican as the settings say; each is reached with the service's own user, and with the caller's token where one is given."""

import importlib
from typing import Any

from roadstead_octavia.outside.absent import NoKeys, NoNetwork
from roadstead_octavia.outside.keys import Keys
from roadstead_octavia.outside.network import Network
from roadstead_octavia.outside.service import ServiceUser
from roadstead_octavia.settings import OctaviaSettings


def service_user(settings: OctaviaSettings, timeout: float) -> ServiceUser:
    """BadSettings when its address or password is missing."""
    return ServiceUser(
        auth_url=settings.identity_url(),
        username=settings.username,
        password=settings.service_password(),
        project_name=settings.project_name,
        user_domain_name=settings.user_domain_name,
        project_domain_name=settings.project_domain_name,
        region_name=settings.region_name,
        interface=settings.interface,
        verify=str(settings.ca_file) if settings.ca_file else True,
        timeout=timeout,
    )


def network_of(settings: OctaviaSettings) -> Network:
    """Neutron, or what refuses in words when no cloud is set up."""
    made: Network = _made("neutron", "make_network", settings) or NoNetwork()
    return made


def keys_of(settings: OctaviaSettings) -> Keys:
    """Barbican, or what refuses in words when no cloud is set up."""
    made: Keys = _made("barbican", "make_keys", settings) or NoKeys()
    return made


def _made(module: str, function: str, settings: OctaviaSettings) -> Any:
    """What `function(user, settings)` of the module makes; None without a cloud."""
    if settings.auth_url is None and settings.auth_strategy != "keystone":
        return None
    make = getattr(importlib.import_module(f"roadstead_octavia.outside.{module}"), function)
    return make(service_user(settings, settings.cloud_timeout), settings)
