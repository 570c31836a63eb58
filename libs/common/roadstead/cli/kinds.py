"""Words for kinds: what people type, and what is listed of each."""

from collections.abc import Sequence

from roadstead.cli.failures import UserError
from roadstead.subjects import KINDS, LATER, PLURALS

INVENTORIES = ("flavor", "image", "volumeclass", "externalnetwork")
SHORT = {
    "id": "identity",
    "net": "network",
    "sg": "securitygroup",
    "srv": "server",
    "vol": "volume",
    "lb": "loadbalancer",
    "ca": "sshcertificateauthority",
    "volumeclasses": "volumeclass",
    "class": "volumeclass",
    "externalnetworks": "externalnetwork",
    "flavors": "flavor",
    "images": "image",
}
# Dependencies first: the order of applying; deleting goes the other way.
ORDER = (
    "region",
    "identity",
    "sshcertificateauthority",
    "network",
    "securitygroup",
    "volume",
    "server",
    "loadbalancer",
    "image",
)
STORED = tuple(kind for kind in ORDER if kind not in LATER)
_WORDS = (
    {plural: kind for kind, plural in PLURALS.items()} | SHORT | {kind: kind for kind in KINDS + INVENTORIES}
)


def kind_of(word: str, among: Sequence[str] = (*STORED, *INVENTORIES)) -> str:
    """The kind that a word means: its name, its plural or a short form, in any case.  UserError for no kind, naming those `among`."""
    found = _WORDS.get(word.lower().replace("-", "").replace("_", ""))
    if found is None:
        raise UserError(f"there is no kind {word}; there are: {', '.join(among)}", 2)
    if found not in (*STORED, *INVENTORIES):
        raise UserError(f"the kind {found} comes with a later release; there are: {', '.join(among)}", 2)
    return found


def stored_kind(word: str) -> str:
    """A kind that has resources of its own, not an inventory."""
    kind = kind_of(word, STORED)
    if kind in INVENTORIES:
        raise UserError(f"{kind} is an inventory of the cloud: only `roadstead get {kind}` shows it", 2)
    return kind


def has_project(kind: str) -> bool:
    return kind != "region"
