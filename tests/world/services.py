"""Every service of the product, as its own `__main__` declares it."""

from roadstead_compute.__main__ import SERVICE as COMPUTE
from roadstead_identity.__main__ import SERVICE as IDENTITY
from roadstead_loadbalancer.__main__ import SERVICE as LOADBALANCER
from roadstead_monitor.__main__ import SERVICE as MONITOR
from roadstead_network.__main__ import SERVICE as NETWORK
from roadstead_volumes.__main__ import SERVICE as VOLUMES

ALL = (IDENTITY, NETWORK, COMPUTE, VOLUMES, LOADBALANCER, MONITOR)

__all__ = ["ALL", "COMPUTE", "IDENTITY", "LOADBALANCER", "MONITOR", "NETWORK", "VOLUMES"]
