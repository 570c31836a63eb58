"""The ground of these tests: networks of the simulated Neutron in OVN, and machines that reach each other through it."""

from typing import Any

from roadstead.testing.ovn_mirror.ovsdb import as_list
from roadstead.testing.private_ovn import PrivateOvn

from .region import Region


def port_row(ovn: PrivateOvn, port_id: str) -> dict[str, Any] | None:
    session = ovn.nb()
    try:
        rows = session.select(
            "Logical_Switch_Port", ["addresses", "external_ids", "type"], [["name", "==", port_id]]
        )
    finally:
        session.close()
    return rows[0] if rows else None


def test_machines_reach_each_other_across_the_router_in_both_families(
    region: Region, ovn: PrivateOvn
) -> None:
    near, far = region.machine("near", region.front), region.machine("far", region.back)
    far.serve(8080)
    far.serve(5353, "udp")
    ovn.settled()
    assert near.ask(far.address, 8080, 3) == {"far": 3}
    assert near.ask(far.address6, 8080, 3) == {"far": 3}
    assert near.ask(far.address, 5353, 3, "udp") == {"far": 3}
    far.stop_serving(8080)
    assert near.ask(far.address, 8080, 1) == {"ConnectionRefusedError": 1}


def test_a_floating_ip_leads_in_from_outside_until_it_is_taken_off(region: Region, ovn: PrivateOvn) -> None:
    inside, outside = (
        region.machine("inside", region.back),
        region.machine("outside", region.outside, v6=False),
    )
    inside.serve(8080)
    floating = region.floating_ip(inside.port_id)
    ovn.settled()
    row = port_row(ovn, inside.port_id)
    assert row is not None
    assert row["external_ids"]["neutron:port_fip"] == floating["floating_ip_address"]
    assert outside.ask(floating["floating_ip_address"], 8080, 3) == {"inside": 3}
    region.change("floatingip", floating["id"], port_id=None)
    ovn.settled()
    row = port_row(ovn, inside.port_id)
    assert row is not None
    assert "neutron:port_fip" not in row["external_ids"]
    assert "inside" not in outside.ask(floating["floating_ip_address"], 8080, 1)


def test_a_vip_port_without_an_owner_has_no_addresses_on_its_switch_and_one_with_an_owner_has(
    region: Region, ovn: PrivateOvn
) -> None:
    ports = {
        owner: region.make(
            "port", name="ovn-lb-vip-1", network_id=region.front.network, device_owner=owner,
            fixed_ips=[{"subnet_id": region.front.subnet}],
        )
        for owner in ("", "ovn-lb:vip", "ovn-lb-hm:distributed")
    }  # fmt: skip
    rows = {owner: port_row(ovn, port["id"]) or {} for owner, port in ports.items()}
    assert as_list(rows[""]["addresses"]) == []
    assert ports["ovn-lb:vip"]["fixed_ips"][0]["ip_address"] in rows["ovn-lb:vip"]["addresses"]
    assert rows["ovn-lb-hm:distributed"]["type"] == "localport"
    assert rows["ovn-lb:vip"]["external_ids"]["neutron:cidrs"].endswith("/24")
    for port in ports.values():
        region.drop("port", port["id"])
    assert [port_row(ovn, port["id"]) for port in ports.values()] == [None, None, None]


def test_laying_all_anew_keeps_load_balancers_on_their_switches_and_what_went_stays_gone(
    region: Region, ovn: PrivateOvn
) -> None:
    session = ovn.nb()
    switch = f"neutron-{region.front.network}"
    made = session.transact(
        {"op": "insert", "table": "Load_Balancer", "row": {"name": "kept"}, "uuid-name": "x"},
        {
            "op": "mutate", "table": "Logical_Switch", "where": [["name", "==", switch]],
            "mutations": [["load_balancer", "insert", ["set", [["named-uuid", "x"]]]]],
        },
    )  # fmt: skip
    port = region.make("port", name="short-lived", network_id=region.front.network)
    region.drop("port", port["id"])
    region.mirror.lay()
    held = session.select("Logical_Switch", ["load_balancer"], [["name", "==", switch]])[0]["load_balancer"]
    session.close()
    assert held == made[0]["uuid"][1]
    assert port_row(ovn, port["id"]) is None
    assert region.cloud.neutron.state.ports.get(port["id"]) is None


def test_a_router_that_loses_an_interface_and_its_gateway_loses_them_in_ovn(
    region: Region, ovn: PrivateOvn
) -> None:
    session = ovn.nb()

    def router(router_id: str) -> tuple[int, int, int]:
        row = session.select(
            "Logical_Router", ["ports", "nat", "static_routes"], [["name", "==", f"neutron-{router_id}"]]
        )[0]
        return len(as_list(row["ports"])), len(as_list(row["nat"])), len(as_list(row["static_routes"]))

    gateway = {"network_id": region.outside.network}
    made = region.make("router", name="second", external_gateway_info=gateway)["id"]
    network = region.make("network", name="third")["id"]
    subnet = region.make("subnet", network_id=network, ip_version=4, cidr="10.50.9.0/24", enable_dhcp=False)[
        "id"
    ]
    region.join(subnet, made)
    assert router(made) == (2, 1, 1)
    region.part(subnet, made)
    assert router(made) == (1, 0, 1)
    region.change("router", made, external_gateway_info=None)
    assert router(made) == (0, 0, 0)
    region.drop("router", made)
    assert session.select("Logical_Router", ["name"], [["name", "==", f"neutron-{made}"]]) == []
    session.close()
