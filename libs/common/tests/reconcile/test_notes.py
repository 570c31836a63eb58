"""What passes remember of the cloud in memory."""

from roadstead.reconcile.notes import Notes
from roadstead.subjects import Key


def key(ident: str) -> Key:
    return Key("r", "p", "server", ident)


def test_notes_are_added_up_and_forgotten_with_the_resource() -> None:
    notes = Notes()
    notes.add(key("a"), {"server": "1"})
    notes.add(key("a"), {"port": "2"})
    assert notes.of(key("a")) == {"server": "1", "port": "2"}
    notes.forget(key("a"))
    assert notes.of(key("a")) == {}


def test_the_oldest_notes_go_when_there_are_too_many() -> None:
    notes = Notes(most=2)
    for ident in ("a", "b"):
        notes.add(key(ident), {"server": ident})
    notes.add(key("a"), {"server": "again"})
    notes.add(key("c"), {"server": "c"})
    assert notes.of(key("b")) == {}
    assert notes.of(key("a")) == {"server": "again"}
