"""Requests as gophercloud, Terraform and cloud-provider-openstack make them, as against the simulated cloud: the same tests."""

from tests.octavia.test_go_clients import (
    go,
    go_admin,
    test_cloud_provider_openstack_ensures_and_deletes_a_service,
    test_cloud_provider_openstack_tells_features_by_the_current_version,
    test_errors_are_what_clients_look_for,
    test_lists_by_filters_pages_and_fields,
    test_terraform_applies_changes_and_destroys,
    test_terraform_keeps_quotas_flavors_and_zones,
)

__all__ = [
    "go",
    "go_admin",
    "test_cloud_provider_openstack_ensures_and_deletes_a_service",
    "test_cloud_provider_openstack_tells_features_by_the_current_version",
    "test_errors_are_what_clients_look_for",
    "test_lists_by_filters_pages_and_fields",
    "test_terraform_applies_changes_and_destroys",
    "test_terraform_keeps_quotas_flavors_and_zones",
]
