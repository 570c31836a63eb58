"""Regions, identities and quotas: the service that owns every OpenStack project and user."""
