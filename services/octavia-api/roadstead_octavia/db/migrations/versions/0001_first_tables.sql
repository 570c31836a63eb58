-- The tables of the schema `octavia` as they were at revision 0001.  Statements end with a semicolon at the end of a line.
-- Operations and reports rewrite the rows of a tree often: their pages keep room for it.

CREATE TABLE algorithm (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE amphora_roles (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE client_authentication_mode (
    name varchar(10) COLLATE "C" NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE health_monitor_type (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE l7policy_action (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE l7rule_compare_type (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE l7rule_type (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE lb_topology (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE operating_status (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE protocol (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE provisioning_status (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE session_persistence_type (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE vrrp_auth_method (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    PRIMARY KEY (name)
);

CREATE TABLE flavor_profile (
    id varchar(36) COLLATE "C" NOT NULL,
    name varchar(255) COLLATE "C",
    provider_name varchar(255) COLLATE "C" NOT NULL,
    flavor_data varchar(4096) COLLATE "C" NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE flavor (
    id varchar(36) COLLATE "C" NOT NULL,
    name varchar(255) COLLATE "C",
    description varchar(255) COLLATE "C",
    enabled boolean NOT NULL,
    flavor_profile_id varchar(36) COLLATE "C" NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT fk_flavor_flavor_profile_id FOREIGN KEY (flavor_profile_id) REFERENCES flavor_profile (id),
    CONSTRAINT uq_flavor_name UNIQUE (name)
);
CREATE INDEX ix_flavor_profile ON flavor (flavor_profile_id);

CREATE TABLE availability_zone_profile (
    id varchar(36) COLLATE "C" NOT NULL,
    name varchar(255) COLLATE "C",
    provider_name varchar(255) COLLATE "C" NOT NULL,
    availability_zone_data varchar(4096) COLLATE "C" NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE availability_zone (
    name varchar(255) COLLATE "C" NOT NULL,
    description varchar(255) COLLATE "C",
    enabled boolean NOT NULL,
    availability_zone_profile_id varchar(36) COLLATE "C" NOT NULL,
    PRIMARY KEY (name),
    CONSTRAINT fk_az_az_profile_id FOREIGN KEY (availability_zone_profile_id) REFERENCES availability_zone_profile (id)
);
CREATE INDEX ix_availability_zone_profile ON availability_zone (availability_zone_profile_id);

CREATE TABLE quotas (
    project_id varchar(36) COLLATE "C" NOT NULL,
    health_monitor integer,
    listener integer,
    load_balancer integer,
    member integer,
    pool integer,
    l7policy integer,
    l7rule integer,
    in_use_health_monitor integer,
    in_use_listener integer,
    in_use_load_balancer integer,
    in_use_member integer,
    in_use_pool integer,
    in_use_l7policy integer,
    in_use_l7rule integer,
    PRIMARY KEY (project_id)
);

CREATE TABLE tags (
    resource_id varchar(36) COLLATE "C" NOT NULL,
    tag varchar(255) COLLATE "C" NOT NULL,
    PRIMARY KEY (resource_id, tag)
);
CREATE INDEX ix_tags_tag ON tags (tag);

CREATE TABLE load_balancer (
    id varchar(36) COLLATE "C" NOT NULL,
    project_id varchar(36) COLLATE "C",
    name varchar(255) COLLATE "C",
    description varchar(255) COLLATE "C",
    provisioning_status varchar(16) COLLATE "C" NOT NULL,
    operating_status varchar(16) COLLATE "C" NOT NULL,
    topology varchar(36) COLLATE "C",
    enabled boolean NOT NULL,
    server_group_id varchar(36) COLLATE "C",
    provider varchar(64) COLLATE "C",
    flavor_id varchar(36) COLLATE "C",
    availability_zone varchar(255) COLLATE "C",
    created_at timestamp,
    updated_at timestamp,
    version bigint DEFAULT 1 NOT NULL,
    revision bigint DEFAULT 1 NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT fk_load_balancer_provisioning_status_name FOREIGN KEY (provisioning_status) REFERENCES provisioning_status (name),
    CONSTRAINT fk_load_balancer_operating_status_name FOREIGN KEY (operating_status) REFERENCES operating_status (name),
    CONSTRAINT fk_lb_topology_name FOREIGN KEY (topology) REFERENCES lb_topology (name),
    CONSTRAINT fk_lb_flavor_id FOREIGN KEY (flavor_id) REFERENCES flavor (id),
    CONSTRAINT fk_load_balancer_availability_zone_name FOREIGN KEY (availability_zone) REFERENCES availability_zone (name)
) WITH (fillfactor = 80);
CREATE INDEX ix_load_balancer_availability_zone ON load_balancer (availability_zone);
CREATE INDEX ix_load_balancer_deleted ON load_balancer (updated_at) WHERE provisioning_status = 'DELETED';
CREATE INDEX ix_load_balancer_flavor ON load_balancer (flavor_id);
CREATE INDEX ix_load_balancer_order ON load_balancer (created_at NULLS FIRST, id);
CREATE INDEX ix_load_balancer_project ON load_balancer (project_id, created_at NULLS FIRST, id);

CREATE TABLE vip (
    load_balancer_id varchar(36) COLLATE "C" NOT NULL,
    ip_address varchar(64) COLLATE "C",
    port_id varchar(36) COLLATE "C",
    subnet_id varchar(36) COLLATE "C",
    network_id varchar(36) COLLATE "C",
    qos_policy_id varchar(36) COLLATE "C",
    octavia_owned boolean,
    vnic_type varchar(64) COLLATE "C",
    PRIMARY KEY (load_balancer_id),
    CONSTRAINT fk_vip_load_balancer_id FOREIGN KEY (load_balancer_id) REFERENCES load_balancer (id) ON DELETE CASCADE
);
CREATE INDEX ix_vip_port ON vip (port_id);

CREATE TABLE vip_security_group (
    load_balancer_id varchar(36) COLLATE "C" NOT NULL,
    sg_id varchar(64) COLLATE "C" NOT NULL,
    PRIMARY KEY (load_balancer_id, sg_id),
    CONSTRAINT fk_vip_sg_vip_lb_id FOREIGN KEY (load_balancer_id) REFERENCES vip (load_balancer_id) ON DELETE CASCADE
);

CREATE TABLE additional_vip (
    load_balancer_id varchar(36) COLLATE "C" NOT NULL,
    ip_address varchar(64) COLLATE "C",
    port_id varchar(36) COLLATE "C",
    subnet_id varchar(36) COLLATE "C" NOT NULL,
    network_id varchar(36) COLLATE "C",
    PRIMARY KEY (load_balancer_id, subnet_id),
    CONSTRAINT fk_add_vip_load_balancer_id FOREIGN KEY (load_balancer_id) REFERENCES load_balancer (id) ON DELETE CASCADE
);
CREATE INDEX ix_additional_vip_load_balancer_id ON additional_vip (load_balancer_id);

CREATE TABLE pool (
    id varchar(36) COLLATE "C" NOT NULL,
    project_id varchar(36) COLLATE "C",
    name varchar(255) COLLATE "C",
    description varchar(255) COLLATE "C",
    protocol varchar(16) COLLATE "C" NOT NULL,
    lb_algorithm varchar(255) COLLATE "C" NOT NULL,
    provisioning_status varchar(16) COLLATE "C" NOT NULL,
    operating_status varchar(16) COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    load_balancer_id varchar(36) COLLATE "C",
    tls_certificate_id varchar(255) COLLATE "C",
    ca_tls_certificate_id varchar(255) COLLATE "C",
    crl_container_id varchar(255) COLLATE "C",
    tls_enabled boolean DEFAULT false NOT NULL,
    tls_ciphers varchar(2048) COLLATE "C",
    tls_versions text COLLATE "C",
    alpn_protocols text COLLATE "C",
    created_at timestamp,
    updated_at timestamp,
    PRIMARY KEY (id),
    CONSTRAINT fk_pool_protocol_name FOREIGN KEY (protocol) REFERENCES protocol (name),
    CONSTRAINT fk_pool_algorithm_name FOREIGN KEY (lb_algorithm) REFERENCES algorithm (name),
    CONSTRAINT fk_pool_provisioning_status_name FOREIGN KEY (provisioning_status) REFERENCES provisioning_status (name),
    CONSTRAINT fk_pool_operating_status_name FOREIGN KEY (operating_status) REFERENCES operating_status (name),
    CONSTRAINT fk_pool_load_balancer_id FOREIGN KEY (load_balancer_id) REFERENCES load_balancer (id) ON DELETE CASCADE
) WITH (fillfactor = 80);
CREATE INDEX ix_pool_load_balancer ON pool (load_balancer_id);
CREATE INDEX ix_pool_order ON pool (created_at NULLS FIRST, id);
CREATE INDEX ix_pool_project ON pool (project_id, created_at NULLS FIRST, id);

CREATE TABLE session_persistence (
    pool_id varchar(36) COLLATE "C" NOT NULL,
    type varchar(36) COLLATE "C" NOT NULL,
    cookie_name varchar(255) COLLATE "C",
    persistence_timeout integer,
    persistence_granularity varchar(64) COLLATE "C",
    PRIMARY KEY (pool_id),
    CONSTRAINT fk_session_persistence_pool_id FOREIGN KEY (pool_id) REFERENCES pool (id) ON DELETE CASCADE,
    CONSTRAINT fk_session_persistence_session_persistence_type_name FOREIGN KEY (type) REFERENCES session_persistence_type (name)
);

CREATE TABLE member (
    id varchar(36) COLLATE "C" NOT NULL,
    project_id varchar(36) COLLATE "C",
    name varchar(255) COLLATE "C",
    pool_id varchar(36) COLLATE "C" NOT NULL,
    subnet_id varchar(36) COLLATE "C",
    ip_address varchar(64) COLLATE "C" NOT NULL,
    protocol_port integer NOT NULL,
    weight integer,
    backup boolean NOT NULL,
    monitor_address varchar(64) COLLATE "C",
    monitor_port integer,
    provisioning_status varchar(16) COLLATE "C" NOT NULL,
    operating_status varchar(16) COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    vnic_type varchar(64) COLLATE "C",
    created_at timestamp,
    updated_at timestamp,
    PRIMARY KEY (id),
    CONSTRAINT fk_member_pool_id FOREIGN KEY (pool_id) REFERENCES pool (id) ON DELETE CASCADE,
    CONSTRAINT fk_member_provisioning_status_name FOREIGN KEY (provisioning_status) REFERENCES provisioning_status (name),
    CONSTRAINT fk_member_operating_status_name FOREIGN KEY (operating_status) REFERENCES operating_status (name),
    CONSTRAINT uq_member_pool_id_address_protocol_port UNIQUE (pool_id, ip_address, protocol_port)
) WITH (fillfactor = 80);
CREATE INDEX ix_member_order ON member (created_at NULLS FIRST, id);
CREATE INDEX ix_member_project ON member (project_id, created_at NULLS FIRST, id);

CREATE TABLE health_monitor (
    id varchar(36) COLLATE "C" NOT NULL,
    project_id varchar(36) COLLATE "C",
    name varchar(255) COLLATE "C",
    type varchar(36) COLLATE "C" NOT NULL,
    pool_id varchar(36) COLLATE "C" NOT NULL,
    delay integer NOT NULL,
    timeout integer NOT NULL,
    fall_threshold integer NOT NULL,
    rise_threshold integer NOT NULL,
    http_method varchar(16) COLLATE "C",
    url_path varchar(2048) COLLATE "C",
    expected_codes varchar(64) COLLATE "C",
    enabled boolean NOT NULL,
    provisioning_status varchar(16) COLLATE "C" NOT NULL,
    operating_status varchar(16) COLLATE "C" NOT NULL,
    http_version double precision,
    domain_name varchar(255) COLLATE "C",
    created_at timestamp,
    updated_at timestamp,
    PRIMARY KEY (id),
    CONSTRAINT fk_health_monitor_health_monitor_type_name FOREIGN KEY (type) REFERENCES health_monitor_type (name),
    CONSTRAINT fk_health_monitor_pool_id FOREIGN KEY (pool_id) REFERENCES pool (id) ON DELETE CASCADE,
    CONSTRAINT fk_health_monitor_provisioning_status_name FOREIGN KEY (provisioning_status) REFERENCES provisioning_status (name),
    CONSTRAINT fk_health_monitor_operating_status_name FOREIGN KEY (operating_status) REFERENCES operating_status (name),
    CONSTRAINT uq_health_monitor_pool UNIQUE (pool_id)
) WITH (fillfactor = 80);
CREATE INDEX ix_health_monitor_order ON health_monitor (created_at NULLS FIRST, id);
CREATE INDEX ix_health_monitor_project ON health_monitor (project_id, created_at NULLS FIRST, id);

CREATE TABLE listener (
    id varchar(36) COLLATE "C" NOT NULL,
    project_id varchar(36) COLLATE "C",
    name varchar(255) COLLATE "C",
    description varchar(255) COLLATE "C",
    protocol varchar(16) COLLATE "C" NOT NULL,
    protocol_port integer NOT NULL,
    connection_limit integer,
    load_balancer_id varchar(36) COLLATE "C",
    tls_certificate_id varchar(255) COLLATE "C",
    default_pool_id varchar(36) COLLATE "C",
    provisioning_status varchar(16) COLLATE "C" NOT NULL,
    operating_status varchar(16) COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    peer_port integer,
    insert_headers jsonb,
    timeout_client_data integer,
    timeout_member_connect integer,
    timeout_member_data integer,
    timeout_tcp_inspect integer,
    client_ca_tls_certificate_id varchar(255) COLLATE "C",
    client_authentication varchar(10) COLLATE "C" DEFAULT 'NONE' NOT NULL,
    client_crl_container_id varchar(255) COLLATE "C",
    tls_ciphers varchar(2048) COLLATE "C",
    tls_versions text COLLATE "C",
    alpn_protocols text COLLATE "C",
    hsts_max_age integer,
    hsts_include_subdomains boolean,
    hsts_preload boolean,
    created_at timestamp,
    updated_at timestamp,
    PRIMARY KEY (id),
    CONSTRAINT fk_listener_protocol_name FOREIGN KEY (protocol) REFERENCES protocol (name),
    CONSTRAINT fk_listener_load_balancer_id FOREIGN KEY (load_balancer_id) REFERENCES load_balancer (id) ON DELETE CASCADE,
    CONSTRAINT fk_listener_pool_id FOREIGN KEY (default_pool_id) REFERENCES pool (id) ON DELETE SET NULL,
    CONSTRAINT fk_listener_provisioning_status_name FOREIGN KEY (provisioning_status) REFERENCES provisioning_status (name),
    CONSTRAINT fk_listener_operating_status_name FOREIGN KEY (operating_status) REFERENCES operating_status (name),
    CONSTRAINT fk_listener_client_authentication_mode_name FOREIGN KEY (client_authentication) REFERENCES client_authentication_mode (name),
    CONSTRAINT uq_listener_load_balancer_id_protocol_port UNIQUE (load_balancer_id, protocol, protocol_port)
) WITH (fillfactor = 80);
CREATE INDEX ix_listener_default_pool ON listener (default_pool_id);
CREATE INDEX ix_listener_order ON listener (created_at NULLS FIRST, id);
CREATE INDEX ix_listener_project ON listener (project_id, created_at NULLS FIRST, id);

CREATE TABLE listener_cidr (
    listener_id varchar(36) COLLATE "C" NOT NULL,
    cidr varchar(64) COLLATE "C" NOT NULL,
    PRIMARY KEY (listener_id, cidr),
    CONSTRAINT fk_listener_cidr_listener_id FOREIGN KEY (listener_id) REFERENCES listener (id) ON DELETE CASCADE
);

CREATE TABLE sni (
    listener_id varchar(36) COLLATE "C" NOT NULL,
    tls_container_id varchar(255) COLLATE "C" NOT NULL,
    position integer,
    PRIMARY KEY (listener_id, tls_container_id),
    CONSTRAINT fk_sni_listener_id FOREIGN KEY (listener_id) REFERENCES listener (id) ON DELETE CASCADE
);

CREATE TABLE listener_statistics (
    listener_id varchar(36) COLLATE "C" NOT NULL,
    amphora_id varchar(36) COLLATE "C" NOT NULL,
    bytes_in bigint NOT NULL,
    bytes_out bigint NOT NULL,
    active_connections integer NOT NULL,
    total_connections bigint NOT NULL,
    request_errors bigint NOT NULL,
    PRIMARY KEY (listener_id, amphora_id)
);

CREATE TABLE l7policy (
    id varchar(36) COLLATE "C" NOT NULL,
    project_id varchar(36) COLLATE "C",
    name varchar(255) COLLATE "C",
    description varchar(255) COLLATE "C",
    listener_id varchar(36) COLLATE "C" NOT NULL,
    action varchar(36) COLLATE "C" NOT NULL,
    redirect_pool_id varchar(36) COLLATE "C",
    redirect_url varchar(255) COLLATE "C",
    redirect_prefix varchar(255) COLLATE "C",
    redirect_http_code integer,
    position integer NOT NULL,
    enabled boolean NOT NULL,
    provisioning_status varchar(16) COLLATE "C" NOT NULL,
    operating_status varchar(16) COLLATE "C" NOT NULL,
    created_at timestamp,
    updated_at timestamp,
    PRIMARY KEY (id),
    CONSTRAINT fk_l7policy_listener_id FOREIGN KEY (listener_id) REFERENCES listener (id) ON DELETE CASCADE,
    CONSTRAINT fk_l7policy_l7policy_action_name FOREIGN KEY (action) REFERENCES l7policy_action (name),
    CONSTRAINT fk_l7policy_pool_id FOREIGN KEY (redirect_pool_id) REFERENCES pool (id) ON DELETE SET NULL,
    CONSTRAINT fk_l7policy_provisioning_status_name FOREIGN KEY (provisioning_status) REFERENCES provisioning_status (name),
    CONSTRAINT fk_l7policy_operating_status_name FOREIGN KEY (operating_status) REFERENCES operating_status (name)
) WITH (fillfactor = 80);
CREATE INDEX ix_l7policy_listener ON l7policy (listener_id);
CREATE INDEX ix_l7policy_order ON l7policy (created_at NULLS FIRST, id);
CREATE INDEX ix_l7policy_project ON l7policy (project_id, created_at NULLS FIRST, id);
CREATE INDEX ix_l7policy_redirect_pool ON l7policy (redirect_pool_id);

CREATE TABLE l7rule (
    id varchar(36) COLLATE "C" NOT NULL,
    project_id varchar(36) COLLATE "C",
    l7policy_id varchar(36) COLLATE "C" NOT NULL,
    type varchar(36) COLLATE "C" NOT NULL,
    compare_type varchar(36) COLLATE "C" NOT NULL,
    key varchar(255) COLLATE "C",
    value varchar(255) COLLATE "C" NOT NULL,
    invert boolean DEFAULT false NOT NULL,
    enabled boolean NOT NULL,
    provisioning_status varchar(16) COLLATE "C" NOT NULL,
    operating_status varchar(16) COLLATE "C" NOT NULL,
    created_at timestamp,
    updated_at timestamp,
    PRIMARY KEY (id),
    CONSTRAINT fk_l7rule_l7policy_id FOREIGN KEY (l7policy_id) REFERENCES l7policy (id) ON DELETE CASCADE,
    CONSTRAINT fk_l7rule_l7rule_type_name FOREIGN KEY (type) REFERENCES l7rule_type (name),
    CONSTRAINT fk_l7rule_l7rule_compare_type_name FOREIGN KEY (compare_type) REFERENCES l7rule_compare_type (name),
    CONSTRAINT fk_l7rule_provisioning_status_name FOREIGN KEY (provisioning_status) REFERENCES provisioning_status (name),
    CONSTRAINT fk_l7rule_operating_status_name FOREIGN KEY (operating_status) REFERENCES operating_status (name)
) WITH (fillfactor = 80);
CREATE INDEX ix_l7rule_order ON l7rule (created_at NULLS FIRST, id);
CREATE INDEX ix_l7rule_policy ON l7rule (l7policy_id);
CREATE INDEX ix_l7rule_project ON l7rule (project_id, created_at NULLS FIRST, id);

CREATE TABLE amphora (
    id varchar(36) COLLATE "C" NOT NULL,
    load_balancer_id varchar(36) COLLATE "C",
    compute_id varchar(36) COLLATE "C",
    lb_network_ip varchar(64) COLLATE "C",
    vrrp_ip varchar(64) COLLATE "C",
    ha_ip varchar(64) COLLATE "C",
    vrrp_port_id varchar(36) COLLATE "C",
    ha_port_id varchar(36) COLLATE "C",
    cert_expiration timestamp,
    cert_busy boolean DEFAULT false NOT NULL,
    role varchar(36) COLLATE "C",
    status varchar(36) COLLATE "C",
    vrrp_interface varchar(16) COLLATE "C",
    vrrp_id integer,
    vrrp_priority integer,
    cached_zone varchar(255) COLLATE "C",
    image_id varchar(36) COLLATE "C",
    compute_flavor varchar(255) COLLATE "C",
    created_at timestamp,
    updated_at timestamp,
    PRIMARY KEY (id),
    CONSTRAINT fk_amphora_load_balancer_id FOREIGN KEY (load_balancer_id) REFERENCES load_balancer (id) ON DELETE SET NULL,
    CONSTRAINT fk_amphora_roles_name FOREIGN KEY (role) REFERENCES amphora_roles (name),
    CONSTRAINT fk_container_provisioning_status_name FOREIGN KEY (status) REFERENCES provisioning_status (name)
);
CREATE INDEX ix_amphora_load_balancer ON amphora (load_balancer_id);
CREATE INDEX ix_amphora_order ON amphora (created_at NULLS FIRST, id);

CREATE TABLE amphora_build_request (
    amphora_id varchar(36) COLLATE "C" NOT NULL,
    priority integer,
    created_time timestamp DEFAULT (now() AT TIME ZONE 'UTC') NOT NULL,
    status varchar(16) COLLATE "C" DEFAULT 'WAITING' NOT NULL,
    PRIMARY KEY (amphora_id)
);

CREATE TABLE amphora_build_slots (
    id integer NOT NULL,
    slots_used integer,
    PRIMARY KEY (id)
);

CREATE TABLE amphora_health (
    amphora_id varchar(36) COLLATE "C" NOT NULL,
    last_update timestamp DEFAULT (now() AT TIME ZONE 'UTC') NOT NULL,
    busy boolean DEFAULT false NOT NULL,
    PRIMARY KEY (amphora_id)
);

CREATE TABLE amphora_member_port (
    port_id varchar(36) COLLATE "C" NOT NULL,
    amphora_id varchar(36) COLLATE "C" NOT NULL,
    network_id varchar(36) COLLATE "C",
    created_at timestamp,
    updated_at timestamp,
    PRIMARY KEY (port_id),
    CONSTRAINT fk_member_port_amphora_id FOREIGN KEY (amphora_id) REFERENCES amphora (id) ON DELETE CASCADE
);
CREATE INDEX ix_amphora_member_port_amphora ON amphora_member_port (amphora_id);

CREATE TABLE vrrp_group (
    load_balancer_id varchar(36) COLLATE "C" NOT NULL,
    vrrp_group_name varchar(36) COLLATE "C",
    vrrp_auth_type varchar(16) COLLATE "C",
    vrrp_auth_pass varchar(36) COLLATE "C",
    advert_int integer,
    PRIMARY KEY (load_balancer_id),
    CONSTRAINT fk_vrrp_group_load_balancer_id FOREIGN KEY (load_balancer_id) REFERENCES load_balancer (id) ON DELETE CASCADE,
    CONSTRAINT fk_load_balancer_vrrp_auth_method_name FOREIGN KEY (vrrp_auth_type) REFERENCES vrrp_auth_method (name)
);

CREATE TABLE operation (
    id varchar(36) COLLATE "C" NOT NULL,
    load_balancer_id varchar(36) COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    provider varchar(64) COLLATE "C" NOT NULL,
    method varchar(64) COLLATE "C" NOT NULL,
    object varchar(32) COLLATE "C" NOT NULL,
    verb varchar(32) COLLATE "C" NOT NULL,
    touched jsonb NOT NULL,
    arguments jsonb NOT NULL,
    state varchar(16) COLLATE "C" DEFAULT 'SENT' NOT NULL,
    reason text COLLATE "C",
    created_at timestamp NOT NULL,
    ended_at timestamp,
    deadline timestamp NOT NULL,
    next_send_at timestamp,
    sends integer DEFAULT 1 NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT fk_operation_load_balancer_id FOREIGN KEY (load_balancer_id) REFERENCES load_balancer (id) ON DELETE CASCADE
) WITH (fillfactor = 80);
CREATE INDEX ix_operation_due ON operation (next_send_at) WHERE next_send_at IS NOT NULL;
CREATE INDEX ix_operation_ended ON operation (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX ix_operation_load_balancer ON operation (load_balancer_id, created_at);

CREATE TABLE vip_port_claim (
    load_balancer_id varchar(36) COLLATE "C" NOT NULL,
    project_id varchar(36) COLLATE "C",
    provider varchar(64) COLLATE "C" NOT NULL,
    maker varchar(16) COLLATE "C" NOT NULL,
    port_id varchar(36) COLLATE "C",
    created_at timestamp NOT NULL,
    deadline timestamp NOT NULL,
    removing_since timestamp,
    PRIMARY KEY (load_balancer_id)
);
CREATE INDEX ix_vip_port_claim_deadline ON vip_port_claim (deadline);
