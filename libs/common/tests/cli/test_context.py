"""Which deployment a command talks to."""

from pathlib import Path

import pytest

from roadstead.cli.context import Choice, Context, load_context, write_context
from roadstead.cli.failures import UserError


def contexts(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "config" / "roadstead"
    folder.mkdir(parents=True)
    (folder / "contexts.yaml").write_text(text)


TWO = """
current: one
contexts:
  one: {natsUrl: "nats://one:4222", region: r1, project: p1, organization: o1}
  two: {natsUrl: "nats://two:4222", nkeySeedFile: two.nk, inboxPrefix: _INBOX_two}
"""


def test_without_anything_the_environment_speaks() -> None:
    found = load_context(Choice(), {"ROADSTEAD_NATS_URL": "nats://x:1", "ROADSTEAD_REGION": "r"})
    assert (found.nats_url, found.region, found.project) == ("nats://x:1", "r", None)


def test_the_current_one_of_the_file_is_used_and_another_can_be_named(tmp_path: Path) -> None:
    contexts(tmp_path, TWO)
    assert load_context(Choice(), {}).nats_url == "nats://one:4222"
    assert load_context(Choice("two"), {}).inbox_prefix == "_INBOX_two"
    assert load_context(Choice(), {"ROADSTEAD_CONTEXT": "two"}).nkey_seed_file == "two.nk"


def test_the_local_stack_comes_before_the_file(tmp_path: Path) -> None:
    contexts(tmp_path, TWO)
    (tmp_path / "run").mkdir()
    write_context(tmp_path / "run" / "context.yaml", Context("local", "nats://127.0.0.1:9", region="here"))
    assert load_context(Choice(), {}) == Context("local", "nats://127.0.0.1:9", region="here")
    assert load_context(Choice("one"), {}).region == "r1"


def test_options_come_before_variables_and_those_before_the_context(tmp_path: Path) -> None:
    contexts(tmp_path, TWO)
    variables = {"ROADSTEAD_PROJECT": "p2", "ROADSTEAD_REGION": "r2"}
    found = load_context(Choice(region="r3"), variables)
    assert (found.region, found.project, found.organization) == ("r3", "p2", "o1")
    assert load_context(Choice(), {"ROADSTEAD_NATS_URL": "nats://x:1"}).nats_url == "nats://one:4222"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("contexts: {one: {natsURL: x}}\ncurrent: one", "unknown fields: natsURL"),
        ("contexts: {one: {natsUrl: 5}}\ncurrent: one", "natsUrl must be text"),
        ("contexts: {one: []}\ncurrent: one", "must be a mapping"),
        ("current: three\ncontexts: {one: {}}", "there is no context three; known in"),
        ("- a", "must hold a mapping"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_file_that_cannot_be_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    contexts(tmp_path, text)
    with pytest.raises(UserError) as caught:
        load_context(Choice(), {})
    assert said in str(caught.value)


def test_what_is_missing_names_the_option_that_gives_it() -> None:
    with pytest.raises(UserError, match="--region"):
        Context("x").need_region()
    with pytest.raises(UserError, match="--project"):
        Context("x").need_project()
    with pytest.raises(UserError, match="ROADSTEAD_DATABASE_URL"):
        Context("x").need_database()
