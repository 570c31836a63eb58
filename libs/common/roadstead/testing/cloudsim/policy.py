"""Which calls beyond the stock policies a caller may make.

Each override is a rule of a real service that a cloud's operator has to widen for the
region service. `region` has all of them, `stock` none; a test may take single ones away.
"""

from __future__ import annotations

KEYSTONE_GRANT_LB_MEMBER = "identity:domain_managed_target_role"
NOVA_QUOTA_UPDATE = "os_compute_api:os-quota-sets:update"
NEUTRON_QUOTA_UPDATE = "update_quota"
CINDER_QUOTA_UPDATE = "volume_extension:quotas:update"
NEUTRON_CREATE_SEGMENTS = "create_network:segments"
NEUTRON_CREATE_PROVIDER_TYPE = "create_network:provider:network_type"
NEUTRON_CREATE_PROVIDER_PHYSICAL = "create_network:provider:physical_network"
NEUTRON_CREATE_PROVIDER_SEGMENT = "create_network:provider:segmentation_id"
NEUTRON_GET_PROVIDER_TYPE = "get_network:provider:network_type"
NEUTRON_GET_PROVIDER_PHYSICAL = "get_network:provider:physical_network"
NEUTRON_GET_PROVIDER_SEGMENT = "get_network:provider:segmentation_id"
NOVA_PIN_HOST = "compute:servers:create:requested_destination"
GLANCE_PUBLICIZE = "publicize_image"
PLACEMENT_LIST_PROVIDERS = "placement:resource_providers:list"
IRONIC_LIST_ALL = "baremetal:node:list_all"

REGION_OVERRIDES = frozenset(
    {
        KEYSTONE_GRANT_LB_MEMBER,
        NOVA_QUOTA_UPDATE,
        NEUTRON_QUOTA_UPDATE,
        CINDER_QUOTA_UPDATE,
        NEUTRON_CREATE_SEGMENTS,
        NEUTRON_CREATE_PROVIDER_TYPE,
        NEUTRON_CREATE_PROVIDER_PHYSICAL,
        NEUTRON_CREATE_PROVIDER_SEGMENT,
        NEUTRON_GET_PROVIDER_TYPE,
        NEUTRON_GET_PROVIDER_PHYSICAL,
        NEUTRON_GET_PROVIDER_SEGMENT,
        NOVA_PIN_HOST,
        GLANCE_PUBLICIZE,
        PLACEMENT_LIST_PROVIDERS,
        IRONIC_LIST_ALL,
    }
)
"""Every rule here lets the role manager (of the project, where there is one) do what stock policy
keeps for the cloud administrator."""
