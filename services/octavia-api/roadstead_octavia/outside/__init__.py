"""Neutron and the key manager, asked in the caller's name or the service's."""
