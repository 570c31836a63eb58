"""What the API refuses with: one table of names, statuses and texts, and the three forms of body that they travel in.

The texts are facts of the wire: clients show them and some match them.  `refuse("NotFound", resource="Pool", id=x)` makes the error;
which of the body forms it takes is decided where it is caught (`http/faults.py`): an error raised while an operation runs is a
*fault* (`faultcode`, `faultstring`, `debuginfo`), one raised while the request is routed is a *routing error* (`code`, `title`,
`description`).
"""

from typing import Any

TEXTS: dict[str, tuple[int, str]] = {
    "CertificateRetrieval": (400, "Could not retrieve certificate: %(ref)s"),
    "DisabledOption": (400, "The selected %(option)s is not allowed in this deployment: %(value)s"),
    "DuplicateHealthMonitor": (409, "This pool already has a health monitor"),
    "DuplicateListenerEntry": (
        409,
        "Another Listener on this Load Balancer is already using protocol %(protocol)s and protocol_port %(port)d",
    ),
    "DuplicateMemberEntry": (
        409,
        "Another member on this pool is already using ip %(ip_address)s on protocol_port %(port)d",
    ),
    "DuplicatePoolEntry": (409, "This listener already has a default pool"),
    "IDAlreadyExists": (409, "Already an entity with that specified id."),
    "ImmutableObject": (409, "%(resource)s %(id)s is immutable and cannot be updated."),
    "InvalidFilterArgument": (400, "One or more arguments are either duplicate or invalid"),
    "InvalidL7PolicyAction": (400, "Invalid L7 Policy action specified: %(action)s"),
    "InvalidL7PolicyArgs": (400, "Invalid L7 Policy arguments: %(msg)s"),
    "InvalidLimit": (400, "Supplied pagination limit '%(key)s' is not valid."),
    "InvalidMarker": (400, "Supplied pagination marker '%(key)s' is not valid."),
    "InvalidOption": (400, "%(value)s is not a valid option for %(option)s"),
    "InvalidSortDirection": (400, "Supplied sort direction '%(key)s' is not valid."),
    "InvalidSortKey": (400, "Supplied sort key '%(key)s' is not valid."),
    "InvalidSubresource": (400, "%(resource)s %(id)s not found."),
    "InvalidURLPath": (400, "Not a valid URLPath: %(url_path)s"),
    "L7RuleValidation": (400, "Error parsing L7Rule: %(error)s"),
    "LBPendingStateError": (409, "Invalid state %(state)s of loadbalancer resource %(id)s"),
    "ListenerNoChildren": (400, "Protocol %(protocol)s listeners cannot have child objects."),
    "MemberSRIOVDisabled": (400, "The load balancer flavor does not allow SR-IOV member ports."),
    "MissingProject": (400, "Something unknown went wrong"),
    "MissingCertSubject": (400, "No CN or DNSName(s) found in certificate. The certificate is invalid."),
    "NotFound": (404, "%(resource)s %(id)s not found."),
    "ObjectInUse": (409, "%(object)s %(id)s is in use and cannot be modified."),
    "PolicyForbidden": (403, "Policy does not allow this request to be performed."),
    "PoolInUseByL7Policy": (409, "Pool %(id)s is in use by L7 policy %(l7policy_id)s"),
    "ProjectBusy": (503, "Project busy.  Unable to lock the project.  Please try again."),
    "ProviderDriverError": (500, "Provider '%(prov)s' reports error: %(user_msg)s"),
    "ProviderFlavorMismatch": (400, "Flavor '%(flav)s' is not compatible with provider '%(prov)s'"),
    "ProviderNotEnabled": (400, "Provider '%(prov)s' is not enabled."),
    "ProviderNotFound": (501, "Provider '%(prov)s' was not found."),
    "ProviderNotImplemented": (
        501,
        "Provider '%(prov)s' does not support a requested action: %(user_msg)s",
    ),
    "ProviderUnsupportedOption": (
        501,
        "Provider '%(prov)s' does not support a requested option: %(user_msg)s",
    ),
    "QuotaException": (403, "Quota has been met for resources: %(resource)s"),
    "RecordAlreadyExists": (409, "A %(field)s of %(name)s already exists."),
    "SingleCreateDetailsMissing": (400, "Missing details for %(type)s object: %(name)s"),
    "TooManyL7RulesOnL7Policy": (409, "Too many rules on L7 policy %(id)s"),
    "UnreadablePKCS12": (
        400,
        "The PKCS12 bundle is unreadable. Please check the PKCS12 bundle validity. In addition, make sure it does not require a"
        " pass phrase. Error: %(error)s",
    ),
    "VIPAddressConflict": (409, "The VIP IP address is already in use: %(msg)s"),
    "VIPValidation": (400, "Validation failure: VIP must contain one of: %(objects)s."),
    "Validation": (400, "Validation failure: %(detail)s"),
    # Texts of the reader of requests.
    "UnknownMimetype": (415, "Unknown mimetype: %(type)s"),
    "NotJson": (400, "Request is not in valid JSON format"),
    "NotXml": (400, "Request is not in valid XML format"),
    "UnknownArgument": (400, 'Unknown argument: "%(name)s"'),
    "MissingArgument": (400, 'Missing argument: "%(name)s"'),
    "UnknownAttribute": (400, "Unknown attribute for argument %(where)s: %(names)s"),
    "UnknownAttributes": (400, "Unknown attributes for argument %(where)s: %(names)s"),
    "InvalidInput": (400, "Invalid input for field/attribute %(field)s. Value: '%(value)s'. %(reason)s"),
}


class ApiError(Exception):
    """A refusal.  status: HTTP status.  text: what the client reads.  name: the row of TEXTS, for tests and metrics.

    headers: sent with the answer, e.g. Retry-After.
    """

    def __init__(
        self, status: int, text: str, name: str = "", headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.name = name
        self.headers = headers

    @property
    def faultcode(self) -> str:
        """Client for 4xx, Server otherwise."""
        return "Client" if 400 <= self.status < 500 else "Server"


def refuse(name: str, /, **values: Any) -> ApiError:
    """The error of that row of TEXTS with its values filled in; raise it."""
    status, text = TEXTS[name]
    return ApiError(status, text % values if values else text, name)


def invalid(detail: str) -> ApiError:
    """400 `Validation failure: DETAIL`."""
    return refuse("Validation", detail=detail)


def not_found(resource: str, identifier: str) -> ApiError:
    """404; resource is the noun that clients read, e.g. `Load Balancer`."""
    return refuse("NotFound", resource=resource, id=identifier)
