"""What a service remembers of other owners' resources, and for how long."""

from dataclasses import replace

from roadstead.reconcile.views import Directory, StatusView
from roadstead.testing.passbench import view


def known(ident: str, version: int = 1, *, gone: bool = False) -> StatusView:
    made = view(
        "volume", ident, "r", spec={"size": "1Gi"}, metadata={"name": ident}, resource_version=version
    )
    return replace(made, gone=gone)


def test_an_older_message_changes_nothing_also_of_what_is_gone() -> None:
    directory = Directory()
    assert directory.hear(known("a", 3, gone=True))
    assert not directory.hear(known("a", 2))
    held = directory.get("volume", "a")
    assert held is not None
    assert (held.gone, held.resource_version, held.metadata, held.spec) == (True, 3, {"name": "a"}, {})
    assert list(directory.of_kind("volume")) == []


def test_a_next_life_is_known_as_a_whole() -> None:
    directory = Directory()
    directory.hear(known("a", 3, gone=True))
    assert directory.hear(known("a", 4))
    assert [v.spec for v in directory.of_kind("volume")] == [{"size": "1Gi"}]


def test_of_those_that_went_the_last_ones_are_remembered_and_of_those_that_are_all() -> None:
    directory = Directory(gone_kept=2)
    directory.hear(known("back", 1, gone=True))
    directory.hear(known("back", 2))
    for ident in ("a", "b", "c"):
        directory.hear(known(ident))
        directory.hear(known(ident, 2, gone=True))
    assert directory.get("volume", "a") is None
    assert directory.heard("volume", "a") is None
    assert [i for i in ("b", "c", "back") if directory.get("volume", i) is not None] == ["b", "c", "back"]
