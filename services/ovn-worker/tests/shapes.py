"""Trees and facts for tests: one small region, and generators of load balancers in it."""

from typing import Any

from hypothesis import strategies as st

from roadstead_ovn.facts import Facts, FloatingIP, Network, Port, RouterPort, ServiceMonitor, Subnet

Json = dict[str, Any]
SUBNETS = {
    "sub-a": ("net-a", "192.0.2.0/24"),
    "sub-b": ("net-b", "198.51.100.0/24"),
    "sub-6": ("net-a", "2001:db8::/64"),
}
ADDRESSES = {
    "sub-a": [f"192.0.2.{n}" for n in (10, 11, 20)],
    "sub-b": [f"198.51.100.{n}" for n in (10, 11)],
    "sub-6": ["2001:db8::10", "2001:db8::11"],
}


def machine(identifier: str, subnet: str, address: str, name: str = "", owner: str = "compute:nova") -> Port:
    return Port(identifier, SUBNETS[subnet][0], name, owner, "", "project", ((subnet, address),))


def monitor_port(subnet: str, address: str) -> Port:
    return machine(f"probe-{subnet}", subnet, address, f"ovn-lb-hm-{subnet}", "ovn-lb-hm:distributed")


def facts(**changes: Any) -> Facts:
    """Two networks on one router, machines at every address, ports for probes everywhere."""
    given: dict[str, Any] = {
        "networks": (Network("net-a"), Network("net-b")),
        "subnets": tuple(Subnet(key, network, cidr) for key, (network, cidr) in SUBNETS.items()),
        "ports": (
            machine("vip", "sub-a", "192.0.2.5", "ovn-lb-vip-lb", "ovn-lb:vip"),
            machine("vip6", "sub-6", "2001:db8::5", "ovn-lb-vip-additional-1-lb", "ovn-lb:vip"),
            *(machine(f"vm-{a}", subnet, a) for subnet, found in ADDRESSES.items() for a in found),
            monitor_port("sub-a", "192.0.2.200"),
            monitor_port("sub-b", "198.51.100.200"),
            monitor_port("sub-6", "2001:db8::c8"),
        ),
        "router_ports": (
            RouterPort("rp-a", "r1", "net-a", ("192.0.2.1/24",)),
            RouterPort("rp-b", "r1", "net-b", ("198.51.100.1/24",)),
        ),
    }
    return Facts(**{**given, **changes})


def member(identifier: str, address: str, port: int = 80, subnet: str | None = "sub-a", **more: Any) -> Json:
    model = {"$type": "Member", "member_id": identifier, "address": address, "protocol_port": port}
    return {**model, "subnet_id": subnet, "admin_state_up": True, **more}


def monitor(identifier: str = "hm", **more: Any) -> Json:
    times = {"delay": 5, "timeout": 3, "max_retries": 2, "max_retries_down": 4}
    return {"$type": "HealthMonitor", "healthmonitor_id": identifier, "type": "TCP", **times, **more}


def pool(identifier: str = "pool", members: list[Json] | None = None, **more: Any) -> Json:
    model = {"$type": "Pool", "pool_id": identifier, "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}
    return {**model, "admin_state_up": True, "members": members or [], "healthmonitor": None, **more}


def listener(identifier: str = "listener", port: int = 80, default: str | None = "pool", **more: Any) -> Json:
    model = {"$type": "Listener", "listener_id": identifier, "protocol": "TCP", "protocol_port": port}
    return {**model, "default_pool_id": default, "admin_state_up": True, **more}


def tree(
    listeners: list[Json] | None = None,
    pools: list[Json] | None = None,
    statuses: dict[str, dict[str, list[str]]] | None = None,
    **more: Any,
) -> Json:
    """more: fields of the load balancer."""
    model = {
        "$type": "LoadBalancer",
        "loadbalancer_id": "lb",
        "admin_state_up": True,
        "vip_address": "192.0.2.5",
        "vip_port_id": "vip",
        "vip_network_id": "net-a",
        "vip_subnet_id": "sub-a",
        "listeners": listeners or [],
        "pools": pools or [],
        **more,
    }
    return {
        "loadbalancer_id": "lb",
        "provider": "ovn",
        "revision": 7,
        "vip_port_owned": False,
        "loadbalancer": model,
        "statuses": statuses or {},
    }


SIXTH = {"ip_address": "2001:db8::5", "port_id": "vip6", "network_id": "net-a", "subnet_id": "sub-6"}

# ------------------------------------------------------------ generators

_protocols = st.sampled_from(["TCP", "UDP", "SCTP", "HTTP"])
_statuses = st.sampled_from(["ACTIVE", "PENDING_CREATE", "PENDING_UPDATE", "PENDING_DELETE", "ERROR"])
_operating = st.sampled_from(["ONLINE", "OFFLINE", "ERROR", "NO_MONITOR", "DEGRADED"])


@st.composite
def members(draw: st.DrawFn, prefix: str) -> list[Json]:
    places = st.sampled_from([(s, a) for s, found in ADDRESSES.items() for a in [*found, "203.0.113.9"]])
    drawn = draw(st.lists(st.tuples(places, st.sampled_from([80, 8080]), st.booleans()), max_size=4))
    return [
        member(
            f"{prefix}-m{n}", address, port, draw(st.sampled_from([subnet, "gone", None])), admin_state_up=up
        )
        for n, ((subnet, address), port, up) in enumerate(drawn)
    ]


@st.composite
def pools(draw: st.DrawFn) -> list[Json]:
    found = []
    for n in range(draw(st.integers(0, 3))):
        kept = draw(
            st.sampled_from([None, {"type": "SOURCE_IP"}, {"type": "SOURCE_IP", "persistence_timeout": 60}])
        )
        found.append(
            pool(
                f"p{n}",
                draw(members(f"p{n}")),
                protocol=draw(_protocols),
                lb_algorithm=draw(st.sampled_from(["SOURCE_IP", "SOURCE_IP_PORT"])),
                admin_state_up=draw(st.booleans()),
                session_persistence=kept,
                healthmonitor=monitor(f"p{n}-hm") if draw(st.booleans()) else None,
            )
        )
    return found


@st.composite
def trees(draw: st.DrawFn) -> Json:
    made = draw(pools())
    names = [p["pool_id"] for p in made]
    listeners = [
        listener(
            f"l{n}",
            draw(st.sampled_from([53, 80, 443])),
            draw(st.sampled_from([*names, "gone", None])),
            protocol=draw(_protocols),
            admin_state_up=draw(st.booleans()),
        )
        for n in range(draw(st.integers(0, 3)))
    ]
    ids = ["l0", "l1", "p0", "p1", "p0-m0", "p1-m0", "p0-hm"]
    statuses = {
        "objects": {
            key: [draw(_statuses), draw(_operating)]
            for key in draw(st.lists(st.sampled_from(ids), unique=True))
        }
    }
    more: Json = {"admin_state_up": draw(st.booleans())}
    if draw(st.booleans()):
        more["additional_vips"] = [SIXTH]
    return tree(listeners, made, statuses, **more)


@st.composite
def regions(draw: st.DrawFn) -> Facts:
    """The region with parts of it missing, floating IPs, and probes in any state."""
    whole = facts()

    def some(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(item for item in items if draw(st.integers(0, 9)))

    floating = (FloatingIP("203.0.113.20", "vip", "192.0.2.5"), FloatingIP("203.0.113.21", "vm-192.0.2.10"))
    probes = tuple(
        ServiceMonitor(f"vm-{a}", a, 80, "tcp", draw(st.sampled_from(["", "online", "offline", "error"])))
        for a in ADDRESSES["sub-a"]
    )
    return Facts(
        some(whole.networks),
        some(whole.subnets),
        some(whole.ports),
        some(whole.router_ports),
        some(floating),
        some(probes),
    )
