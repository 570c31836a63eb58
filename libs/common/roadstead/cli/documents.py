"""Files given to apply and delete: read, checked for what can be seen without asking anyone, put into order.

Pure but for the reading of the files.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from roadstead.cli.failures import UserError
from roadstead.cli.kinds import ORDER, STORED, kind_of

LARGEST_FILE = 4 << 20
FIELDS = {"apiVersion", "kind", "metadata", "spec"}
# What a reading command shows and nobody wants: taken out, so that its output can be edited and applied again.
READ_ONLY = ("generation", "incarnation", "deletionTimestamp", "creationTime", "fixedFields")
SHOWN_ONLY = {
    "status",
    "consumers",
    "references",
    "resourceVersion",
    "specPosition",
    "everProvisioned",
    "paused",
    "gone",
}


@dataclass(frozen=True)
class Document:
    """One wanted resource as its file says it; where: file and place, for messages."""

    kind: str
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    where: str

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def label(self) -> str:
        return f"{self.kind} {self.name or self.metadata.get('id')}"

    def with_parts(self, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> "Document":
        return replace(self, metadata=metadata, spec=spec)


class _Loader(yaml.SafeLoader):
    """Without times: a text that looks like one stays a text, as JSON has it.  A field that stands twice is a mistake."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    raise yaml.MarkedYAMLError(None, None, f"{key.value} stands twice", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    sign: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_documents(paths: Iterable[Path]) -> list[Document]:
    """All documents of the files, `-` for standard input.  UserError names file and place of what is wrong."""
    found: list[Document] = []
    for path in paths:
        text = sys.stdin.read() if str(path) == "-" else _text(path)
        found += parse(text, "standard input" if str(path) == "-" else str(path))
    if not found:
        raise UserError("the files hold no document: each has kind, metadata and spec", 2)
    refuse_repeated(found)
    return found


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UserError(f"{path} is larger than {LARGEST_FILE >> 20} MiB; give it in parts", 2)
        return path.read_text()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", 2) from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8", 2) from None


def parse(text: str, source: str) -> list[Document]:
    """The documents in a text of YAML (several divided by ---) or JSON (one object, or a list of them)."""
    try:
        loaded = [v for v in yaml.load_all(text, Loader=_Loader) if v is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" line {mark.line + 1}" if mark is not None else ""
        raise UserError(f"{source}{place}: {error.problem or 'not YAML'}", 2) from None
    except yaml.YAMLError as error:
        raise UserError(f"{source} is neither YAML nor JSON: {error}", 2) from None
    flat: list[Any] = []
    for value in loaded:
        flat += value if isinstance(value, list) else [value]
    return [_document(value, f"{source}, document {number}") for number, value in enumerate(flat, 1)]


def _document(value: Any, where: str) -> Document:
    if not isinstance(value, dict):
        raise UserError(f"{where} is no mapping: it needs kind, metadata and spec", 2)
    kind = value.get("kind")
    if not isinstance(kind, str):
        raise UserError(f"{where} has no kind: one of {', '.join(STORED)}", 2)
    try:
        kind = kind_of(kind, STORED)
    except UserError as error:
        raise UserError(f"{where}: {error}", 2) from None
    if kind not in STORED:
        raise UserError(f"{where}: a {kind} cannot be applied; only {', '.join(STORED)}", 2)
    unknown = sorted(str(name) for name in value if name not in FIELDS | SHOWN_ONLY)
    if unknown:
        raise UserError(
            f"{where}: unknown field {', '.join(unknown)}; a document has kind, metadata and spec", 2
        )
    for name in ("metadata", "spec"):
        if not isinstance(value.get(name, {}), dict):
            raise UserError(f"{where}: {name} must be a mapping", 2)
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise UserError(f"{where} holds a value that JSON cannot express; quote it", 2) from None
    metadata = {k: v for k, v in value.get("metadata", {}).items() if k not in READ_ONLY}
    document = Document(kind, metadata, value.get("spec", {}), where)
    if not document.name and not metadata.get("id"):
        raise UserError(f"{where}: metadata.name is missing", 2)
    return document


def refuse_repeated(documents: Sequence[Document]) -> None:
    """The same resource twice would make the outcome depend on the order."""
    seen: dict[tuple[str, str, str], Document] = {}
    for document in documents:
        network = document.metadata.get("networkId") or _network_word(document.spec)
        key = (document.kind, document.name or str(document.metadata.get("id")), str(network))
        if key in seen:
            raise UserError(
                f"{document.where} names {document.label} again, which is in {seen[key].where}", 2
            )
        seen[key] = document


def _network_word(spec: Mapping[str, Any]) -> Any:
    networks = spec.get("networks")
    if isinstance(networks, list) and networks and isinstance(networks[0], dict):
        return networks[0].get("id")
    return spec.get("networkID")


def ordered(documents: Iterable[Document]) -> list[Document]:
    """Dependencies first; documents of one kind stay as they came."""
    return sorted(documents, key=lambda document: ORDER.index(document.kind))
