"""Every page: commands that exist, links that lead somewhere; and what a few requirements say must stand in words."""

import json
import re
import shlex
from importlib.metadata import version
from typing import Any

import pytest
import typer.main

from roadstead.cli.main import app, hoisted
from roadstead.region import RegionSpec
from roadstead.subjects import LATER
from tests.docs.reading import DOCS, OPERATIONS, PAGES, ROOT, blocks, section

LANGUAGES = ("console", "sh", "bash", "")


def command_lines() -> list[tuple[str, str]]:
    """(page, line) of every `roadstead ...` line in a block of code."""
    found = []
    for page in PAGES:
        for language in LANGUAGES:
            for block in blocks(page.read_text(), language):
                for line in block.replace("\\\n", " ").splitlines():
                    text = line.strip().removeprefix("$ ").strip()
                    if re.match(r"(\.venv/bin/)?roadstead( |$)", text):
                        found.append((page.name, text))
    return found


def option_names(command: Any) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {
        "--help"
    }


def fault_of(line: str) -> str | None:
    """What the command line of the program has against it; None when every word and option exists."""
    words = hoisted(shlex.split(re.split(r" [|>&;]|\s#", line)[0])[1:])
    command: Any = typer.main.get_command(app)
    top = option_names(command)
    while words and words[0] in top and words[0].startswith("--") and words[0] != "--help":
        words = words[2:]
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return f"there is no command {words[0]}"
        command = command.commands[words.pop(0)]
    if command.name == "cloudsim":
        return None  # its options are another program's
    options = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
    unknown = options - option_names(command) - top
    return f"{command.name} has no option {', '.join(sorted(unknown))}" if unknown else None


def test_every_command_on_a_page_exists_with_its_options() -> None:
    lines = command_lines()
    assert {page for page, _ in lines} >= {"README.md", "operations.md", "guide.md"}
    assert [(page, line, fault) for page, line in lines if (fault := fault_of(line))] == []


def test_a_command_that_does_not_exist_is_noticed() -> None:
    assert fault_of("roadstead region paint north") == "there is no command paint"
    assert fault_of("roadstead apply --force -f x") == "apply has no option --force"
    assert fault_of("roadstead --context x apply -f x | tee y") is None


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Any) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            heads = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}
            assert anchor in anchors, f"{page.name}: {target}"


def test_no_page_names_a_path_of_somebodys_machine() -> None:
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(root|home|Users|tmp)/", page.read_text()), page.name


def test_decisions_are_numbered_without_gaps_and_have_their_parts() -> None:
    pages = sorted((DOCS / "adr").glob("*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text()
        assert text.startswith(f"# {int(page.name[:4])}. "), page.name
        for part in (r"Context|Situation", "Decision", "Consequences"):
            assert re.search(rf"^## ({part})$", text, re.MULTILINE), f"{page.name} lacks {part}"


# ---------------------------------------------------------------- requirements about words

CAPS = re.compile(r"\bcaps?\b", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+|\n\n|\n\|", text)


def test_inv_180_figures_of_a_class_are_called_caps_wherever_they_are_told() -> None:
    """On every page, and in the text of every message that carries them."""
    told = [
        (page.name, sentence)
        for page in PAGES
        for sentence in sentences(page.read_text())
        if re.search(r"maxIOPS|maxThroughput", sentence)
    ]
    assert {name for name, _ in told} >= {"operations.md", "releases.md"}
    for name, sentence in told:
        assert CAPS.search(sentence), f"{name}: {sentence}"
        assert not re.search(r"(?<!not )guarantee", sentence), f"{name}: {sentence}"
    schemas = json.loads((DOCS / "asyncapi.json").read_text())["components"]["schemas"]
    carrying = {name: s for name, s in schemas.items() if "maxIOPS" in s.get("properties", {})}
    assert carrying
    for name, schema in carrying.items():
        assert "caps, not guarantees" in schema["description"].lower(), name


def test_inv_184_the_release_note_says_to_set_ids_before_the_rollout() -> None:
    """In the section of the release that is installed, by the path that the Region's spec really has."""
    note = section((DOCS / "releases.md").read_text(), version("roadstead"))
    (sentence,) = [s for s in sentences(note) if "selector.ids" in s]
    assert re.search(r"before the\s+rollout", sentence)
    (path,) = re.findall(r"`spec\.([A-Za-z.]+\.ids)`", sentence)
    model: Any = RegionSpec
    for name in path.split("."):
        field = model.model_fields[name]
        inner = [
            a
            for a in getattr(field.annotation, "__args__", (field.annotation,))
            if hasattr(a, "model_fields")
        ]
        model = inner[0] if inner else None
    assert model is None, "ids are the end of the path"
    assert "before you roll out" in section(OPERATIONS.read_text(), "Volume classes")


def test_inv_110_the_guide_says_to_edit_the_spec_and_not_nova() -> None:
    """The text beside the behaviour that the scenario of the same number shows."""
    text = section(OPERATIONS.read_text(), "Change the spec, not Nova")
    assert re.search(r"edit\s+`spec\.image`, never `openstack server rebuild`", text)
    assert "two\nperiods of the monitor" in text or "two periods of the monitor" in text


def test_the_workspaces_version_has_a_release_note() -> None:
    heads = re.findall(r"^## (.*)$", (DOCS / "releases.md").read_text(), re.MULTILINE)
    assert heads[0] == version("roadstead")
    assert f'version = "{heads[0]}"' in (ROOT / "pyproject.toml").read_text()


def test_the_document_of_the_bus_speaks_of_served_kinds_only() -> None:
    document = json.loads((ROOT / "docs" / "asyncapi.json").read_text())
    tokens = {token for channel in document["channels"].values() for token in channel["address"].split(".")}
    assert tokens & set(LATER) <= {"image"}, "the inventory of images is asked for by that name"
    taken = {channel["address"] for channel in document["channels"].values()}
    assert not [
        address
        for address in taken
        for kind in LATER
        if address.startswith(("spec.", "observed.")) and f".{kind}." in address
    ]
    assert "spec.*.*.server.*" in taken
