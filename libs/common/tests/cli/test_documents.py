"""Files: what is read from them, what is refused and how it is said, the order of dependencies."""

from pathlib import Path

import pytest

from roadstead.cli.documents import ordered, parse, read_documents
from roadstead.cli.failures import UserError
from roadstead.cli.kinds import ORDER


def test_several_documents_of_yaml_are_read_in_their_order() -> None:
    found = parse(
        "kind: Network\nmetadata: {name: a}\n---\nkind: servers\nmetadata: {name: b}\nspec: {x: 1}\n", "f"
    )
    assert [(d.kind, d.name, d.spec) for d in found] == [("network", "a", {}), ("server", "b", {"x": 1})]
    assert found[1].where == "f, document 2"


def test_what_get_prints_as_json_can_be_applied_again() -> None:
    text = """[{"kind": "network", "metadata": {"id": "0b5f3cf5-15d7-4a56-a3e4-7f3b1f1f3a3a", "name": "a",
      "generation": 3, "incarnation": 1, "creationTime": "2026-01-01T00:00:00Z"}, "spec": {"prefix": "10.0.0.0/24"},
      "status": {"x": 1}}]"""
    (document,) = parse(text, "f")
    assert document.metadata == {"id": "0b5f3cf5-15d7-4a56-a3e4-7f3b1f1f3a3a", "name": "a"}
    assert document.spec == {"prefix": "10.0.0.0/24"}


def test_a_word_that_looks_like_a_time_stays_text() -> None:
    (document,) = parse("kind: network\nmetadata: {name: a, description: 2026-01-01}\n", "f")
    assert document.metadata["description"] == "2026-01-01"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: [\n", "f line 2"),
        ("just text", "f, document 1 is no mapping"),
        ("metadata: {name: a}", "has no kind"),
        ("kind: castle\nmetadata: {name: a}", "there is no kind castle"),
        (
            "kind: castle\nmetadata: {name: a}",
            "there are: region, identity, network, securitygroup, volume, server, loadbalancer",
        ),
        ("kind: sshcertificateauthority\nmetadata: {name: a}", "comes with a later release"),
        ("kind: network\nmetadata: {name: a,\n name: b}", "f line 3: name stands twice"),
        ('{"kind": "network", "kind": "server", "metadata": {"name": "a"}}', "f line 1: kind stands twice"),
        ("kind: flavor\nmetadata: {name: a}", "a flavor cannot be applied"),
        ("kind: network\nmetadata: {name: a}\nsepc: {}", "unknown field sepc"),
        ("kind: network\nmetadata: []", "metadata must be a mapping"),
        ("kind: network\nspec: {}", "metadata.name is missing"),
        ("kind: network\nmetadata: {name: a}\nspec: {x: .nan}", "JSON cannot express"),
        ("kind: server\nmetadata: {name: a}\n---\nkind: srv\nmetadata: {name: a}", "names server a again"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_place(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "f").write_text(text)
    with pytest.raises(UserError) as caught:
        read_documents([Path("f")])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.status == 2


def test_the_same_name_on_two_networks_is_two_resources(tmp_path: Path) -> None:
    text = "kind: server\nmetadata: {name: a}\nspec: {networks: [{id: one}]}\n---\n"
    (tmp_path / "f").write_text(text + text.replace("one", "two"))
    assert len(read_documents([tmp_path / "f"])) == 2


def test_a_missing_file_and_an_empty_one_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n---\n")
    with pytest.raises(UserError, match="cannot be read"):
        read_documents([tmp_path / "none"])
    with pytest.raises(UserError, match="hold no document"):
        read_documents([tmp_path / "empty"])


def test_dependencies_come_first_and_kinds_keep_their_order() -> None:
    text = "\n---\n".join(
        f"kind: {kind}\nmetadata: {{name: {name}}}"
        for kind, name in [
            ("loadbalancer", "l"),
            ("server", "s2"),
            ("volume", "v"),
            ("server", "s1"),
            ("securitygroup", "g"),
            ("network", "n"),
            ("identity", "i"),
        ]
    )
    assert [d.name for d in ordered(parse(text, "f"))] == ["i", "n", "g", "v", "s2", "s1", "l"]
    assert (
        ORDER.index("identity") < ORDER.index("network") < ORDER.index("server") < ORDER.index("loadbalancer")
    )


def test_an_unknown_kind_names_only_what_can_be_applied() -> None:
    with pytest.raises(UserError) as caught:
        parse("kind: castle\nmetadata: {name: a}", "f")
    for other in ("flavor", "image", "sshcertificateauthority"):
        assert other not in str(caught.value)


def test_a_merge_of_yaml_is_no_field_that_stands_twice() -> None:
    text = "kind: network\nmetadata: {name: a}\nspec:\n  a: &x {b: 1}\n  c: {<<: *x, b: 2}\n"
    (document,) = parse(text, "f")
    assert document.spec["c"] == {"b": 2}
