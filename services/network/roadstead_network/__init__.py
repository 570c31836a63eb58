"""Networks, security groups, external networks and VLAN allocations."""
