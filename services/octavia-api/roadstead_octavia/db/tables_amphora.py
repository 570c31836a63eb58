"""Tables that only the amphora provider of the original fills: kept so that an existing database moves over whole."""

from sqlalchemy import Column, Index, Integer, text

from roadstead_octavia.db.columns import Maker, flag, integer, key, needed, time, times, varchar


def amphora_tables(m: Maker) -> None:
    """Add them."""
    m.table(
        "amphora",
        key(),
        varchar("load_balancer_id", 36),
        varchar("compute_id", 36),
        *(varchar(name, 64) for name in ("lb_network_ip", "vrrp_ip", "ha_ip")),
        *(varchar(name, 36) for name in ("vrrp_port_id", "ha_port_id")),
        time("cert_expiration"),
        flag("cert_busy", default=False),
        varchar("role", 36),
        varchar("status", 36),
        varchar("vrrp_interface", 16),
        integer("vrrp_id"),
        integer("vrrp_priority"),
        varchar("cached_zone", 255),
        varchar("image_id", 36),
        varchar("compute_flavor", 255),
        *times(),
        m.to("fk_amphora_load_balancer_id", "load_balancer_id", "load_balancer.id", "SET NULL"),
        m.to("fk_amphora_roles_name", "role", "amphora_roles.name"),
        m.to("fk_container_provisioning_status_name", "status", "provisioning_status.name"),
        Index("ix_amphora_load_balancer", "load_balancer_id"),
        Index("ix_amphora_order", text("created_at NULLS FIRST"), "id"),
    )
    m.table(
        "amphora_build_request",
        key("amphora_id"),
        integer("priority"),
        time("created_time", nullable=False, server_default=text("(now() AT TIME ZONE 'UTC')")),
        needed("status", 16, server_default=text("'WAITING'")),
    )
    m.table(
        "amphora_build_slots",
        Column("id", Integer, primary_key=True, autoincrement=False),
        integer("slots_used"),
    )
    m.table(
        "amphora_health",
        key("amphora_id"),
        time("last_update", nullable=False, server_default=text("(now() AT TIME ZONE 'UTC')")),
        flag("busy", default=False),
    )
    m.table(
        "amphora_member_port",
        key("port_id"),
        needed("amphora_id", 36),
        varchar("network_id", 36),
        *times(),
        m.to("fk_member_port_amphora_id", "amphora_id", "amphora.id", "CASCADE"),
        Index("ix_amphora_member_port_amphora", "amphora_id"),
    )
    m.table(
        "vrrp_group",
        key("load_balancer_id"),
        varchar("vrrp_group_name", 36),
        varchar("vrrp_auth_type", 16),
        varchar("vrrp_auth_pass", 36),
        integer("advert_int"),
        m.to("fk_vrrp_group_load_balancer_id", "load_balancer_id", "load_balancer.id", "CASCADE"),
        m.to("fk_load_balancer_vrrp_auth_method_name", "vrrp_auth_type", "vrrp_auth_method.name"),
    )
