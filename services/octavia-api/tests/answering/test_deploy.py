"""What is shipped to run the API: it names settings that there are, and ports that agree."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from roadstead.settings import Settings, table
from roadstead_octavia.settings import OctaviaSettings

from .client import ROOT

DEPLOY = ROOT / "deploy"
FILES = [
    DEPLOY / "compose.octavia.yaml",
    DEPLOY / "kubernetes/octavia/kustomization.yaml",
    DEPLOY / "kubernetes/octavia/octavia-api.yaml",
    DEPLOY / "octavia/README.md",
    DEPLOY / "octavia/policies/README.md",
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_settings_that_there_are_are_named(path: Path) -> None:
    known = {row["variable"] for model in (Settings, OctaviaSettings) for row in table(model)}
    named = set(re.findall(r"ROADSTEAD_[A-Z0-9_]*[A-Z0-9]", path.read_text()))
    assert named
    assert named <= known


def objects() -> dict[str, Any]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes/octavia/octavia-api.yaml").read_text())
    return {document["kind"]: document for document in documents}


def test_ports_agree() -> None:
    found = objects()
    container = found["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    settings = (DEPLOY / "kubernetes/octavia/kustomization.yaml").read_text()
    assert f"ROADSTEAD_OCTAVIA_BIND_PORT={ports['api']}" in settings
    assert found["Service"]["spec"]["ports"][0]["port"] == ports["api"] == 9876
    compose = yaml.safe_load((DEPLOY / "compose.octavia.yaml").read_text())["services"]["octavia-api"]
    assert compose["ports"] == [
        f"127.0.0.1:{ports['api']}:{compose['environment']['ROADSTEAD_OCTAVIA_BIND_PORT']}"
    ]


def test_a_pod_has_time_for_its_ending_and_little_power() -> None:
    pod = objects()["Deployment"]["spec"]["template"]["spec"]
    drain = float(OctaviaSettings.model_fields["drain"].default)
    assert pod["terminationGracePeriodSeconds"] > drain + 40
    container = pod["containers"][0]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True


def test_the_stack_does_not_start_it_unless_asked() -> None:
    stack = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert not [name for name in stack if "octavia" in name]
    base = (DEPLOY / "kubernetes/base/kustomization.yaml").read_text()
    assert "octavia" not in base
