"""Odd bodies and queries at Nova and Keystone: always an answer, never an exception, never a 500."""

from typing import Any
from urllib.parse import urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roadstead.testing.cloudsim import Cloud, SimSettings, Stage, stage

ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
# Path, the root key of the body, and the fields that mean something below it.
WRITES: list[tuple[str, str, str, str, tuple[str, ...]]] = [
    ("compute", "POST", "/v2.1/servers", "server", (
        "name", "imageRef", "flavorRef", "networks", "metadata", "key_name", "user_data", "security_groups",
        "availability_zone", "block_device_mapping_v2", "hypervisor_hostname", "tags", "config_drive", "min_count",
    )),
    ("compute", "PUT", "/v2.1/servers/{server}", "server", ("name", "description", "hostname")),
    ("compute", "POST", "/v2.1/servers/{server}/action", "rebuild", ("imageRef", "name", "metadata", "user_data")),
    ("compute", "POST", "/v2.1/servers/{server}/action", "reboot", ("type",)),
    ("compute", "POST", "/v2.1/servers/{server}/action", "createImage", ("name", "metadata")),
    ("compute", "POST", "/v2.1/servers/{server}/action", "resize", ("flavorRef",)),
    ("compute", "POST", "/v2.1/servers/{server}/action", "lock", ("locked_reason",)),
    ("compute", "POST", "/v2.1/servers/{server}/action", "os-getConsoleOutput", ("length",)),
    ("compute", "POST", "/v2.1/servers/{server}/metadata", "metadata", ("a", "b")),
    ("compute", "PUT", "/v2.1/servers/{server}/metadata/a", "meta", ("a",)),
    ("compute", "PUT", "/v2.1/servers/{server}/tags", "tags", ("a",)),
    ("compute", "POST", "/v2.1/servers/{server}/remote-consoles", "remote_console", ("type", "protocol")),
    ("compute", "POST", "/v2.1/servers/{server}/os-volume_attachments", "volumeAttachment", ("volumeId", "device")),
    ("compute", "POST", "/v2.1/servers/{server}/os-interface", "interfaceAttachment", ("port_id", "net_id")),
    ("compute", "POST", "/v2.1/flavors", "flavor", ("name", "ram", "disk", "vcpus", "id", "swap")),
    ("compute", "POST", "/v2.1/os-keypairs", "keypair", ("name", "public_key", "type", "user_id")),
    ("compute", "POST", "/v2.1/os-server-groups", "server_group", ("name", "policy", "rules")),
    ("compute", "PUT", "/v2.1/os-quota-sets/{project}", "quota_set", ("instances", "cores", "force")),
    ("identity", "POST", "/v3/auth/tokens", "auth", ("identity", "scope")),
    ("identity", "POST", "/v3/projects", "project", ("name", "domain_id", "tags", "enabled", "parent_id")),
    ("identity", "PATCH", "/v3/projects/{spare}", "project", ("name", "tags", "description", "enabled")),
    ("identity", "PUT", "/v3/projects/{spare}/tags", "tags", ("a",)),
    ("identity", "POST", "/v3/users", "user", ("name", "domain_id", "password", "default_project_id", "email")),
    ("identity", "PATCH", "/v3/users/{user}", "user", ("name", "password", "enabled", "default_project_id")),
    ("identity", "POST", "/v3/domains", "domain", ("name", "description", "enabled")),
    ("identity", "POST", "/v3/roles", "role", ("name",)),
    ("identity", "POST", "/v3/users/{admin}/application_credentials", "application_credential", (
        "name", "roles", "expires_at", "unrestricted", "secret", "description",
    )),
]  # fmt: skip
IDENTITIES = st.one_of(
    ODD,
    st.fixed_dictionaries(
        {"methods": st.just(["password"]) | st.lists(st.sampled_from(["password", "token", "application_credential"])) | ODD},
        optional={
            "password": st.fixed_dictionaries({}, optional={"user": ODD}) | ODD,
            "token": st.fixed_dictionaries({}, optional={"id": ODD}) | ODD,
            "application_credential": ODD,
        },
    ),
)  # fmt: skip
READS = (
    ("compute", "/v2.1/servers"), ("compute", "/v2.1/servers/detail"), ("compute", "/v2.1/flavors/detail"),
    ("compute", "/v2.1/os-keypairs"), ("compute", "/v2.1/os-server-groups"), ("identity", "/v3/projects"),
    ("identity", "/v3/users"), ("identity", "/v3/role_assignments"), ("identity", "/v3/domains"),
)  # fmt: skip
QUERIES = (
    "limit", "marker", "sort_key", "sort_dir", "name", "status", "ip", "changes-since", "changes-before", "all_tenants",
    "deleted", "tags", "minRam", "is_public", "enabled", "offset", "project_id",
)  # fmt: skip

_WORLDS: list[tuple[Stage, dict[str, str]]] = []


def world() -> tuple[Stage, dict[str, str]]:
    if not _WORLDS:
        cloud = Cloud(settings=SimSettings(token_lifetime=1e9))
        cloud.clock.freeze()
        made = stage(cloud)
        # Odd writes may disable what they hit: they get a project and a user that nobody uses.
        victim = {"name": "victim", "domain_id": made.domain_id}
        call = made.domain.call
        names = {
            "server": made.settled(), "project": made.project_id, "admin": made.admin.user_id,
            "user": call("identity", "POST", "/v3/users", {"user": victim})["user"]["id"],
            "spare": call("identity", "POST", "/v3/projects", {"project": victim})["project"]["id"],
            "image": made.image_ids()[0], "flavor": made.flavor_id(),
        }  # fmt: skip
        _WORLDS.append((made, names))
    return _WORLDS[0]


@settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_odd_bodies_are_answered_and_never_break_the_cloud(data: st.DataObject) -> None:
    made, names = world()
    service, method, path, root, fields = data.draw(st.sampled_from(WRITES))
    below = st.dictionaries(st.sampled_from(fields), ODD, max_size=4) | ODD
    if root == "auth":
        below = st.fixed_dictionaries({"identity": IDENTITIES}, optional={"scope": ODD}) | ODD
    elif root == "server" and method == "POST":
        valid = {"name": "x", "imageRef": names["image"], "flavorRef": names["flavor"], "networks": "none"}
        below = below | st.dictionaries(st.sampled_from(fields), ODD, max_size=2).map(lambda odd: valid | odd)
    body = data.draw(st.fixed_dictionaries({}, optional={root: below}) | ODD)
    own = (made.principal, made.privileged)
    caller = data.draw(st.sampled_from(own)) if service == "compute" and "flavors" not in path else made.admin
    response = caller.send(service, method, path.format(**names), body)
    assert 200 <= response.status < 500
    if response.status >= 400:
        assert isinstance(next(iter(response.body.values()))["message"], str)
    made.cloud.rest()
    made.admin.call("compute", "GET", "/v2.1/servers/detail?all_tenants=1", want=200)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(READS),
    st.lists(
        st.tuples(st.sampled_from(QUERIES), st.text(max_size=5) | st.sampled_from(["1", "-1", "(", "none"]))
    ),
)
def test_odd_queries_are_answered(read: tuple[str, str], query: list[tuple[str, str]]) -> None:
    made, _ = world()
    for caller in (made.principal, made.admin):
        response = caller.send(read[0], "GET", f"{read[1]}?{urlencode(query)}")
        assert 200 <= response.status < 500
