"""What can be told of a region with the service user alone, by reading."""

from roadstead.cloud.checks.findings import Checkup, Severity
from roadstead.cloud.port import CloudError, RegionDomain, RegionProject
from roadstead.cloud.verdicts import safe_text

SKEW_WARNING, SKEW_ERROR = 5.0, 60.0
NEEDED_SERVICES = ("compute", "network", "block-storage", "image", "load-balancer")


async def logins(run: Checkup) -> bool:
    """Whether the service user gets in with both scopes; nothing else can be told otherwise."""
    for scope, code, remedy in (
        (
            RegionDomain(run.region),
            "DOMAIN_LOGIN",
            "run `roadstead region configure` and register again",
        ),
        (
            RegionProject(run.region),
            "PROJECT_LOGIN",
            "run `roadstead region configure` and register again",
        ),
    ):
        try:
            await run.cloud.access(scope)
        except CloudError as error:
            run.add(
                code,
                Severity.ERROR,
                f"the service user cannot log in: {safe_text(error.verdict, 'identity')}",
                remedy,
            )
            return False
    return True


async def services(run: Checkup) -> None:
    offered = {entry.get("type") for entry in (await run.cloud.access(RegionProject(run.region))).catalog}
    names = {"block-storage": {"block-storage", "volumev3", "block-store", "volume"}}
    for service in NEEDED_SERVICES:
        if not offered & names.get(service, {service}):
            run.add(
                "SERVICE_MISSING",
                Severity.ERROR,
                f"the catalog has no {service} service",
                "add its public endpoint to the catalog, or correct regionName",
            )


async def roles(run: Checkup) -> None:
    try:
        known = {role["name"] for role in await run.ask(RegionDomain(run.region), "identity", "role.list")}
    except CloudError as error:
        run.failed("ROLES", "the cloud's roles", error)
        return
    for role in ("manager", *run.spec.identity.roles):
        if role not in known:
            run.add(
                "ROLE_MISSING",
                Severity.ERROR,
                f"the cloud has no role {role}",
                "run `roadstead region configure`, or correct clusterRoles",
            )


async def inventory(run: Checkup) -> None:
    scope = RegionProject(run.region)
    try:
        run.flavors = await run.ask(scope, "compute", "flavor.detail")
        networks = await run.ask(scope, "network", "network.list", query={"router:external": True})
    except CloudError as error:
        run.failed("INVENTORY", "flavors and external networks", error)
        return
    if not run.flavors:
        run.add("FLAVORS_MISSING", Severity.ERROR, "the cloud offers no flavor", "make public flavors")
    external = run.spec.network.externalNetworks
    selector = external.selector if external else None
    chosen = [
        each
        for each in networks
        if selector is None
        or (
            (selector.ids is None or each["id"] in selector.ids)
            and set(selector.tags or ()) <= set(each.get("tags") or ())
        )
    ]
    if not chosen:
        run.add(
            "EXTERNAL_NETWORK_MISSING",
            Severity.ERROR,
            "no external network is selected: routers and public addresses cannot be made",
            "correct externalNetworks.selector" if networks else "make an external network in the cloud",
        )


async def versions(run: Checkup) -> None:
    wanted = _number(run.cloud.settings.nova_microversion)
    scope = RegionProject(run.region)
    try:
        documents = await run.ask(scope, "compute", "versions")
        ranges = [(d.get("min_version"), d.get("version")) for d in documents if d.get("id") == "v2.1"]
        if not any(low and high and _number(low) <= wanted <= _number(high) for low, high in ranges):
            run.add(
                "NOVA_VERSION",
                Severity.ERROR,
                f"Nova does not speak the microversion {run.cloud.settings.nova_microversion}",
                "use a cloud with Nova 23 (2021.1) or newer",
            )
        documents = await run.ask(scope, "load-balancer", "versions")
        if max((_number(d["id"].removeprefix("v")) for d in documents), default=(0, 0)) < (2, 22):
            run.add(
                "OCTAVIA_VERSION",
                Severity.WARNING,
                "Octavia is older than API version 2.22: proxy protocol version 2 will be refused",
                "use a cloud with Octavia 7 or newer, or no proxyProtocolV2",
            )
    except CloudError as error:
        run.failed("VERSIONS", "versions of the services", error)


async def load_balancers(run: Checkup) -> None:
    try:
        found = await run.ask(RegionProject(run.region), "load-balancer", "provider.list")
    except CloudError as error:
        run.failed("LB_PROVIDER", "providers of load balancers", error)
        return
    names = {each["name"] for each in found}
    algorithm = run.spec.loadBalancer.algorithm
    if "ovn" in names and algorithm != "SOURCE_IP_PORT":
        run.add(
            "LB_ALGORITHM",
            Severity.ERROR if names == {"ovn"} else Severity.WARNING,
            f"the provider OVN refuses the algorithm {algorithm}"
            + ("" if names == {"ovn"} else ", should it be the cloud's default"),
            "set loadBalancer.algorithm to SOURCE_IP_PORT",
        )


def clock(run: Checkup) -> None:
    skew = run.cloud.skews.get(run.region)
    if skew is None:
        run.note(
            "CLOCK_NOT_CHECKED",
            "the cloud's clock",
            "its answers bear no date; compare the clocks by hand",
        )
    elif abs(skew) > SKEW_WARNING:
        run.add(
            "CLOCK_SKEW",
            Severity.ERROR if abs(skew) > SKEW_ERROR else Severity.WARNING,
            f"the cloud's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's",
            "let both be set by NTP",
        )


def _number(version: str) -> tuple[int, int]:
    """2.90 as (2, 90); (0, 0) for what is no version."""
    major, _, minor = version.partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)
