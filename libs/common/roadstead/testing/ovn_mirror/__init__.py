"""The simulated cloud's networks in a real OVN Northbound database, as the network service's OVN driver writes them.

With it the Octavia API, the OVN worker and OVN's data path see one world: what is made through the simulated Neutron has its switches,
routers, ports and address translations in OVN before Neutron's answer is out.
"""

from .mirror import OvnMirror
from .ovsdb import OvsdbError, OvsdbRefused, Session

__all__ = ["OvnMirror", "OvsdbError", "OvsdbRefused", "Session"]
