"""One resource as a page for people, and its history as a chain from event over rule to cloud requests."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from rich.text import Text

from roadstead.cli.output import COLOURS, table_text
from roadstead.cli.reading import message_of, status_of
from roadstead.clock import iso, parse_time

LAST_DECISIONS = 8


def description(document: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Text:
    """Everything that a STATUS document says, and the last decisions."""
    metadata, status = document.get("metadata", {}), document.get("status", {})
    text = Text()
    text.append(f"{document.get('kind')} {metadata.get('name') or metadata.get('id')}", "bold")
    text.append("  ")
    text.append(status_of(document), COLOURS.get(status_of(document), ""))
    if message := message_of(document):
        text.append(f"  {message}")
    _section(text, "metadata", metadata)
    _section(text, "spec", document.get("spec", {}))
    _section(text, "status", {k: v for k, v in status.items() if k not in ("conditions", "made")})
    conditions = [
        (c.get("type"), c.get("status"), c.get("reason"), c.get("lastTransitionTime"), c.get("message"))
        for c in status.get("conditions", ())
    ]
    _table(text, "conditions", ("TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"), conditions)
    if consumers := document.get("consumers"):
        text.append("\n\nused by\n", "bold")
        text.append("\n".join(f"  {consumer}" for consumer in consumers))
    if references := document.get("references"):
        text.append("\n\nuses\n", "bold")
        text.append("\n".join(f"  {reference}" for reference in references))
    if document.get("paused"):
        text.append("\n\npaused", "bold yellow")
        text.append("" if document["paused"] is True else f" until {document['paused']}")
    decided = [e for e in entries if e.get("kind") == "decided"][-LAST_DECISIONS:]
    rows = [(e.get("at"), e.get("rule"), e.get("verb"), e.get("why")) for e in decided]
    _table(text, "last decisions", ("AT", "RULE", "VERB", "WHY"), rows)
    return text


def _section(text: Text, title: str, value: Mapping[str, Any]) -> None:
    if not value:
        return
    text.append(f"\n\n{title}\n", "bold")
    lines = yaml.safe_dump(
        dict(value), sort_keys=False, allow_unicode=True, default_flow_style=False
    ).splitlines()
    text.append("\n".join(f"  {line}" for line in lines))


def _table(text: Text, title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    if not rows:
        return
    text.append(f"\n\n{title}\n", "bold")
    text.append_text(table_text(head, rows))


def chain_lines(reply: Mapping[str, Any]) -> Iterator[Text]:
    """`why`: each decision with the event that led to it, and below it the requests that it made of the cloud."""
    for decision in reply.get("chain", ()):
        yield _decision_line(decision)
        cause = decision.get("cause") or {}
        if cause.get("subject"):
            sequence = f" (sequence {cause['sequence']})" if cause.get("sequence") is not None else ""
            yield Text(f"    because of {cause['subject']}{sequence}", "dim")
        for write in decision.get("writes", ()):
            yield Text("    → ") + write_text(write)
    for intent in reply.get("pending", ()):
        if not intent.get("answered"):
            yield Text(
                f"asked at {intent.get('at')}, no answer seen: {intent.get('service')} {intent.get('verb')}",
                "yellow",
            )


def _decision_line(decision: Mapping[str, Any]) -> Text:
    text = Text(f"{_time(decision.get('at'))}  ")
    text.append(f"{decision.get('rule') or '-':<24}", "bold")
    text.append(f" {decision.get('verb') or 'nothing to do':<18}")
    if decision.get("why"):
        text.append(f" {decision['why']}")
    if int(decision.get("count") or 1) > 1:
        text.append(f" ({decision['count']} times)", "dim")
    return text


def write_text(write: Mapping[str, Any]) -> Text:
    """One write to the cloud: service, request, outcome, and the request id that the cloud's own logs know it by."""
    text = Text(
        f"{write.get('service')} {write.get('method') or ''} {write.get('path') or write.get('verb')}  "
    )
    text.append(
        str(write.get("outcome")),
        "red" if write.get("outcome") not in ("ok", "done", "accepted") else "green",
    )
    if write.get("destructive"):
        text.append(" destructive", "bold red")
    if write.get("openstackRequestId"):
        text.append(f"  {write['openstackRequestId']}", "dim")
    return text


def history_lines(entries: Sequence[Mapping[str, Any]]) -> Iterator[Text]:
    """`history`: everything that was decided and done, oldest first."""
    for entry in entries:
        if entry.get("kind") == "decided":
            yield _decision_line(entry)
        elif entry.get("kind") == "acted":
            yield Text(f"{_time(entry.get('at'))}  ") + write_text(entry)
        else:
            more = {k: v for k, v in entry.items() if k not in ("kind", "at")}
            yield Text(f"{_time(entry.get('at'))}  {entry.get('kind')} {more}")


def _time(value: Any) -> str:
    """In the one spelling of times; what is none, as it is."""
    try:
        return iso(parse_time(str(value)))
    except ValueError:
        return str(value or "-")
