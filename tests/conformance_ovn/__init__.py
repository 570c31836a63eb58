"""The OVN worker against recorded scenarios of the original provider, on a real Northbound database."""
