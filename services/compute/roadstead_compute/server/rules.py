"""Names of the rows and verbs of a server's decision tables (behaviour.md sections 6, 9 and 13.4)."""

from enum import StrEnum


class Rule(StrEnum):
    """One member a row; the value bears the row's place in behaviour.md."""

    # 6.3 bounded create retry
    RETRY_COUNT = "6.3-count"
    RETRY_CAP = "6.3-cap"
    RETRY_DELETE = "6.3-retrying-delete"
    RETRY_DELETING = "6.3-retrying-deleting"
    RETRY_ADDRESS = "6.3-retrying-floating-ip"
    RETRY_PORT = "6.3-retrying-port"
    RETRY_TAKEN = "6.3-retrying-port-taken"
    RETRY_READY = "6.3-retrying-gone"
    # inventory rules of a first create
    INVENTORY_LOADING = "5-inventory-loading"
    NOT_OFFERED = "5-inventory"
    # 6.1, by step
    NETWORK_ABSENT = "6.1-5-network"
    GROUP_ELSEWHERE = "6.1-5-group-elsewhere"
    GROUP_ABSENT = "6.1-5-group"
    PORT_ABSENT = "6.1-5-create"
    PORT_MISPLACED = "6.1-5-misplaced"
    PORT_DRIFTED = "6.1-5-update"
    ADDRESSES_MANY = "6.1-6-many"
    ADDRESS_ABSENT = "6.1-6-create"
    ADDRESS_UNWANTED = "6.1-6-delete"
    PORT_TAKEN = "6.1-7-port-taken"
    SERVER_ABSENT = "6.1-9"
    # 9.1
    R1 = "R1"
    R2 = "R2"
    R3 = "R3"
    R3_ERROR = "R3'"
    R3_DONE = "R3''"
    R4_UNBORN = "R4"
    R4_BUSY = "R4'"
    R4_SUBMIT = "R4''"
    # 13.4
    CLAIM = "13.4-claim"
    ATTACH = "13.4-attach"
    DETACH = "13.4-detach"
    RELEASE = "13.4-release"
    ATTACHMENT_WAITS = "13.4-wait"
    ATTACHMENT_FAILED = "13.4-failed"
    # 6.4
    DELETE_GOING = "6.4-going"
    DELETE_DETACH = "6.4-detach"
    DELETE_DETACHING = "6.4-detaching"
    DELETE_SERVER = "6.4-server"
    DELETE_PORT_TAKEN = "6.4-port-taken"
    DELETE_ADDRESS = "6.4-floating-ip"
    DELETE_PORT = "6.4-port"
    DELETE_RELEASE = "6.4-release"
    DELETE_UNRELEASED = "6.4-unreleased"
    DELETED = "6.4-gone"


class Verb(StrEnum):
    """What a pass can do; each is one write (to the cloud, or of a claim)."""

    CREATE_PORT = "create port"
    UPDATE_PORT = "update port"
    DELETE_PORT = "delete port"
    CREATE_ADDRESS = "create floating ip"
    DELETE_ADDRESS = "delete floating ip"
    CREATE_SERVER = "create server"
    REBUILD = "rebuild"
    DELETE_SERVER = "delete server"
    CLAIM = "claim volume"
    ATTACH = "attach volume"
    DETACH = "detach volume"
    RELEASE = "release volume"


CREATING = frozenset({Verb.CREATE_PORT, Verb.CREATE_ADDRESS, Verb.CREATE_SERVER, Verb.ATTACH})
# Wanted and unwanted again by an edit; a second one of the same is refused by the cloud itself.
REPEATABLE = frozenset({Verb.CREATE_ADDRESS, Verb.ATTACH})
# Follows from no row of the attachment, which a lost answer of an attach may still bring.
CONCLUDING = frozenset({Verb.RELEASE})
DESTRUCTIVE = frozenset(
    {Verb.DELETE_PORT, Verb.DELETE_ADDRESS, Verb.REBUILD, Verb.DELETE_SERVER, Verb.DETACH}
)
