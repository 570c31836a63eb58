"""Who a service of ours is in the cloud when it asks in its own name: the credentials of its user, and a session made with them."""

from dataclasses import dataclass

from keystoneauth1 import session as ka_session
from keystoneauth1.identity import v3


@dataclass(frozen=True)
class ServiceUser:
    """auth_url: with its version.  verify: True, or a file of certificates.  timeout in seconds for one answer."""

    auth_url: str
    username: str
    password: str
    project_name: str
    user_domain_name: str = "Default"
    project_domain_name: str = "Default"
    region_name: str | None = None
    interface: str = "internal"
    verify: bool | str = True
    timeout: float = 15.0


def service_session(user: ServiceUser, connections: int = 16) -> ka_session.Session:
    """A session that logs in by itself; its calls block.  connections: at the same time to one host."""
    plugin = v3.Password(
        auth_url=user.auth_url,
        username=user.username,
        password=user.password,
        project_name=user.project_name,
        user_domain_name=user.user_domain_name,
        project_domain_name=user.project_domain_name,
    )
    made = ka_session.Session(auth=plugin, verify=user.verify, timeout=user.timeout, redirect=False)
    adapter = ka_session.TCPKeepAliveAdapter(pool_maxsize=connections, max_retries=0)
    for scheme in ("http://", "https://"):
        made.session.mount(scheme, adapter)
    return made
